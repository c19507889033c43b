package soak

// nics draws what the NICs are like: most often as they come.
func (g *generator) nics() {
	if g.chance(25) {
		return
	}
	g.line("nics:")
	g.line("  profile: %s", one(g, "default", "rxe", "connectx-like", "irdma-like", "ionic-like", "ideal"))
	if g.chance(50) {
		g.line("  recovery: %s", one(g, "go-back-n", "selective-repeat", "selective-repeat"))
	}
	if g.chance(40) {
		g.line("  dcqcn: %s", one(g, `"off"`, "paper", "mlx5", "irdma", "ionic", "hpcc"))
	}
	if g.chance(30) {
		g.line("  max_unacked: %d", one(g, 8, 16, 64, 128, 1024))
	}
	if g.chance(30) {
		g.line("  ack: {request_every: %d, every: %d, delay: %s}", one(g, 1, 2, 8, 16), one(g, 1, 2, 4), one(g, "500ns", "2us"))
	}
	if g.chance(25) {
		g.line("  memory: phantom")
	}
	if g.chance(15) {
		g.line("  pcie: {nic: %s}", one(g, "gen3 x8", "gen4 x16", "gen5 x16"))
	}
	if g.chance(15) {
		g.line("  override:\n    - {node: %s, profile: %s}", one(g, g.t.Hosts()...).Name, one(g, "connectx-like", "irdma-like", "ideal"))
	}
}

// switches draws buffers, marks, pauses and how paths are chosen.
func (g *generator) switches() {
	if g.chance(25) {
		return
	}
	g.line("switches:")
	g.line("  routing: %s", one(g, "ecmp", "ecmp", "spray", "spray-random", "adaptive", "flowlet"))
	if g.chance(40) {
		g.line("  ecn: {kmin: %s, kmax: %s, pmax: %s}", one(g, "5KB", "20KB"), one(g, "30KB", "100KB"), one(g, "1%", "20%", "100%"))
	}
	switch {
	case g.chance(40):
		g.line("  memory: %s", one(g, "1MiB", "4MiB", "16MiB"))
		g.line("  pfc: {priorities: [3]}")
		if g.chance(30) {
			g.line("  watchdog: {detect: %s, restore: %s, action: %s}", one(g, "200us", "5ms"), one(g, "200us", "5ms"), one(g, "drop", "forward", "alert"))
		}
	case g.chance(30):
		g.line("  memory: %s", one(g, "256KiB", "1MiB"))
		g.line("  alpha: %s", one(g, "1/8", "1", "4"))
	default:
		g.line("  buffer: %s", one(g, "128KiB", "256KiB", "1MiB", "2MiB"))
	}
	if g.chance(20) {
		g.line("  queues:\n    - {priority: 3, weight: %d}\n    - {priority: 6, weight: 0}", g.between(1, 8))
	}
}
