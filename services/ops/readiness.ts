/** What must hold for a process to take work, by name: `redis`, `store`. */
export type Checks = Readonly<Record<string, () => boolean>>

export type Readiness = {
  /** Everything is open: from now on these checks decide. */
  start(checks: Checks): void
  /** The process goes down: nothing new from now on (reliability.md rule 15). */
  drain(): void
  /** Why no work should come here; empty while it may. */
  failing(): string[]
}

/** starting -> started (as its checks say) -> draining. */
export function createReadiness(): Readiness {
  let phase: 'starting' | 'started' | 'draining' = 'starting'
  let checks: Checks = {}
  return {
    start(given) {
      checks = given
      if (phase === 'starting') phase = 'started'
    },
    drain() {
      phase = 'draining'
    },
    failing() {
      const failed = Object.keys(checks).filter((name) => !checks[name]?.())
      return phase === 'started' ? failed : [phase, ...failed]
    },
  }
}
