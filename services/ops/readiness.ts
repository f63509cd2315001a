/** Conditions for accepting work, by name, for example `redis`. Each returns whether it holds. */
export type Checks = Readonly<Record<string, () => boolean>>

export type Readiness = {
  /** Call it when everything is open. From then on the process is ready while all checks pass. */
  start(checks: Checks): void
  /** Call it when the process shuts down. It stays unready from then on. */
  drain(): void
  /** The names of the failing checks, after the phase if it is not `started`. Empty when the process is ready. */
  failing(): string[]
}

/** Decides whether a process may receive work. starting -> started (ready while all checks hold) -> draining. */
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
