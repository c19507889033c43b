package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"crypto/ed25519"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// serve answers the machine until the port goes away.
func (g *guestSystem) serve(p port) error {
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(g.spec.HostKey))
	if err != nil {
		return err
	}
	cfg := &ssh.ServerConfig{
		Config: transport,
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), g.spec.ClientKey) {
				return nil, errors.New("not the key of this boot")
			}
			return nil, nil
		},
	}
	cfg.AddHostKey(signer)
	conn, channels, requests, err := ssh.NewServerConn(portConn{p}, cfg)
	if err != nil {
		return fmt.Errorf("ssh: %w", err)
	}
	g.step("connected")
	go g.answer(requests)
	go func() {
		for c := range channels {
			go g.accept(c)
		}
	}()
	if err := conn.Wait(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("ssh: %w", err)
	}
	return nil
}

func (g *guestSystem) answer(requests <-chan *ssh.Request) {
	for req := range requests {
		switch req.Type {
		case reqAlive:
			_ = req.Reply(true, nil)
		case reqClock:
			_ = req.Reply(true, mustJSON(clockAnswer{clockNow(unix.CLOCK_MONOTONIC)}))
		case reqHello:
			go func() {
				<-g.ready
				h := hello{Kernel: release()}
				if g.broken != nil {
					h.Error = g.broken.Error()
				}
				g.mu.Lock()
				h.Steps = append(h.Steps, g.steps...)
				g.mu.Unlock()
				_ = req.Reply(true, mustJSON(h))
			}()
		default:
			if req.WantReply {
				_ = req.Reply(false, nil)
			}
		}
	}
}

func (g *guestSystem) accept(c ssh.NewChannel) {
	var err error
	switch c.ChannelType() {
	case chanRun:
		err = g.acceptRun(c)
	case chanShip:
		err = acceptTransfer(c, func(ch ssh.Channel, path string) error { return unpack(ch, path) })
	case chanFetch:
		err = acceptTransfer(c, func(ch ssh.Channel, path string) error { return pack(ch, path) })
	case chanDial:
		err = acceptDial(c)
	default:
		err = fmt.Errorf("unknown channel type %q", c.ChannelType())
	}
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error())
	}
}

// acceptTransfer runs a ship or fetch; an error goes out on the extended stream.
func acceptTransfer(c ssh.NewChannel, move func(ssh.Channel, string) error) error {
	var spec pathSpec
	if err := json.Unmarshal(c.ExtraData(), &spec); err != nil {
		return err
	}
	ch, requests, err := c.Accept()
	if err != nil {
		return nil
	}
	go ssh.DiscardRequests(requests)
	defer ch.Close()
	code := uint32(0)
	if err := move(ch, spec.Path); err != nil {
		code = 1
		_, _ = io.WriteString(ch.Stderr(), err.Error())
	}
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(exitStatusMsg{code}))
	return nil
}

func acceptDial(c ssh.NewChannel) error {
	var spec pathSpec
	if err := json.Unmarshal(c.ExtraData(), &spec); err != nil {
		return err
	}
	conn, err := net.DialTimeout("unix", spec.Path, 10*time.Second)
	if err != nil {
		return err
	}
	ch, requests, err := c.Accept()
	if err != nil {
		conn.Close()
		return nil
	}
	go ssh.DiscardRequests(requests)
	go func() {
		_, _ = io.Copy(conn, ch)
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(ch, conn)
	ch.Close()
	conn.Close()
	return nil
}

func release() string {
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(uts.Release[:])
}

// portConn makes the port the connection that the SSH library wants.
type portConn struct{ port }

func (portConn) LocalAddr() net.Addr              { return portAddr{} }
func (portConn) RemoteAddr() net.Addr             { return portAddr{} }
func (portConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (portConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (portConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

type portAddr struct{}

func (portAddr) Network() string { return "virtio" }
func (portAddr) String() string  { return portName }
