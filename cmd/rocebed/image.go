package main

import (
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/rocebed/rocebed/images"
	"github.com/spf13/cobra"
)

func newImageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "The guest image: the kernel and userland that --guest boots",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newImageBuildCommand(), newImageShowCommand())
	return c
}

func newImageBuildCommand() *cobra.Command {
	var o images.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "build",
		Short: "Build the guest image unless the cached one still fits this machine",
		Long: `Build the guest image: a kernel of at least Linux 7.1 with its modules (this machine's own where it will
do, else the newest of Debian trixie-backports by signed apt, in a root of its own) and this machine's programs.
The image is cached in $ROCEBED_CACHE, else /var/cache/rocebed (root) or ~/.cache/rocebed, and is built
anew only when something that it is made of has changed.`,
		Example: "  rocebed image build\n  rocebed image build --refresh   # look for a newer kernel",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = progress
			img, err := images.Build(cmd.Context(), o)
			if err != nil {
				return withCode(exitMachine, err)
			}
			return showImage(img, asJSON)
		},
	}
	c.Flags().BoolVar(&o.Refresh, "refresh", false, "look for a newer kernel even though the cached image fits")
	c.Flags().StringVar(&o.CacheDir, "cache", "", "folder of images and kernels")
	c.Flags().BoolVar(&asJSON, "json", false, "print the manifest")
	return c
}

func newImageShowCommand() *cobra.Command {
	var o images.Options
	var asJSON, verify bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Show what the cached guest image is made of",
		Example: "  rocebed image show\n  rocebed image show --json --verify",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			img, err := images.Find(o)
			if err != nil {
				return withCode(exitMachine, err)
			}
			if img == nil {
				return withCode(exitMachine, fmt.Errorf("no image in the cache fits this machine as it is now; `rocebed image build` makes one"))
			}
			if verify {
				if err := img.Verify(); err != nil {
					return withCode(exitMachine, err)
				}
			}
			return showImage(img, asJSON)
		},
	}
	c.Flags().StringVar(&o.CacheDir, "cache", "", "folder of images and kernels")
	c.Flags().BoolVar(&asJSON, "json", false, "print the manifest")
	c.Flags().BoolVar(&verify, "verify", false, "read the image whole and compare it with the manifest's hashes")
	return c
}

func showImage(img *images.Image, asJSON bool) error {
	m := &img.Manifest
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Dir string `json:"dir"`
			*images.Manifest
		}{img.Dir, m})
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "image\t%s\n", img.Dir)
	fmt.Fprintf(w, "built\t%s\n", m.Built.Format("2006-01-02 15:04:05 UTC"))
	fmt.Fprintf(w, "kernel\t%s from %s, %s, %d modules\n", m.Kernel.Release, m.Kernel.Source, m.Kernel.Format, len(m.Kernel.Modules))
	fmt.Fprintf(w, "userland\t%s, %d programs\n", m.Machine, len(m.Programs))
	fmt.Fprintf(w, "size\tkernel %d MB, base %d MB\n", m.Boot.Size>>20, m.Base.Size>>20)
	for _, p := range m.Programs {
		fmt.Fprintf(w, "  %s\t%s %s\n", p.Name, p.Package, p.Version)
	}
	return w.Flush()
}

// progress tells on standard error what long work is at.
func progress(step string) { fmt.Fprintln(os.Stderr, "rocebed:", step) }
