package guest

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Share lets the process at the other end of conn use the guest as if it held it (see Join),
// until conn or the guest ends. Whoever can connect is root in the guest: conn must come from a
// socket that only root can reach.
func (g *Guest) Share(conn net.Conn) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	cfg := &ssh.ServerConfig{Config: transport, NoClientAuth: true}
	cfg.AddHostKey(signer)
	near, channels, requests, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return fmt.Errorf("share guest: %w", err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-g.Done():
			// Give what the guest's end makes of running programs time to pass.
			time.Sleep(100 * time.Millisecond)
			near.Close()
		case <-over:
		}
	}()
	go func() {
		for req := range requests {
			if req.WantReply {
				_ = req.Reply(req.Type == reqAlive, nil)
			}
		}
	}()
	var relays sync.WaitGroup
	for c := range channels {
		relays.Go(func() { g.relay(c) })
	}
	relays.Wait()
	if err := near.Wait(); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("share guest: %w", err)
	}
	return nil
}

// relay opens the same channel to the guest and carries everything between the two.
func (g *Guest) relay(c ssh.NewChannel) {
	far, farRequests, err := g.conn.OpenChannel(c.ChannelType(), c.ExtraData())
	if err != nil {
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			_ = c.Reject(refused.Reason, refused.Message)
		} else {
			_ = c.Reject(ssh.ConnectionFailed, g.reason().Error())
		}
		return
	}
	defer far.Close()
	near, nearRequests, err := c.Accept()
	if err != nil {
		return
	}
	defer near.Close()
	go func() {
		forward(far, nearRequests)
		far.Close() // whoever asked has let go
	}()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.CloseWrite()
	}()
	var out sync.WaitGroup
	out.Go(func() { _, _ = io.Copy(near, far) })
	out.Go(func() { _, _ = io.Copy(near.Stderr(), far.Stderr()) })
	forward(near, farRequests)
	out.Wait()
}

func forward(to ssh.Channel, requests <-chan *ssh.Request) {
	for req := range requests {
		ok, err := to.SendRequest(req.Type, req.WantReply, req.Payload)
		if req.WantReply {
			_ = req.Reply(ok && err == nil, nil)
		}
	}
}

// Join uses a guest that another process holds, over a connection that its Share serves. Close
// ends the connection, not the guest.
func Join(conn net.Conn) (*Guest, error) {
	c, channels, requests, err := ssh.NewClientConn(conn, "guest", &ssh.ClientConfig{
		User: "root",
		// The connection is a unix socket that only root could have made.
		HostKeyCallback:   ssh.InsecureIgnoreHostKey(), //nolint:gosec // see above
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
		Config:            transport,
	})
	if err != nil {
		return nil, fmt.Errorf("join guest: %w", err)
	}
	go ssh.DiscardRequests(requests)
	go func() {
		for c := range channels {
			_ = c.Reject(ssh.Prohibited, "the machine offers nothing")
		}
	}()
	g := &Guest{conn: c, failing: make(chan struct{}), stop: func() {}}
	g.watched.Go(func() {
		_ = c.Wait()
		g.end(fmt.Errorf("%w: the connection to its keeper ended", ErrDied))
	})
	return g, nil
}
