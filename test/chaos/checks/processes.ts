import { type Entry, type Exited, type Killed, ofKind, type Violation } from '../history.ts'
import type { Limits } from '../limits.ts'

const HARMLESS = new Set(['SIGSTOP', 'SIGCONT', 'SIGUSR1', 'SIGUSR2'])

/** `unexpected-exit` and `memory-growth`: only killed processes die, others exit with code 0 on SIGTERM, and memory stays bounded. */
export function checkProcesses(history: readonly Entry[], limits: Limits): Violation[] {
  return [...checkDeaths(history), ...checkMemory(history, limits)]
}

function checkDeaths(history: readonly Entry[]): Violation[] {
  const reasons = new Map<string, Killed[]>()
  const found: Violation[] = []
  for (const entry of history) {
    if (entry.kind === 'killed' && !HARMLESS.has(entry.signal))
      reasons.set(entry.what, [...(reasons.get(entry.what) ?? []), entry])
    if (entry.kind !== 'exited') continue
    found.push(...checkExit(entry, reasons.get(entry.what) ?? []))
    reasons.delete(entry.what)
  }
  return found
}

function checkExit(exit: Exited, kills: readonly Killed[]): Violation[] {
  const how = exit.signal ?? `code ${exit.code}`
  if (kills.length === 0)
    return [
      {
        rule: 'unexpected-exit',
        what: `${exit.what}: died (${how}) without a signal from the scenario`,
        evidence: [exit],
      },
    ]
  if (exit.code === 0 || kills.some(({ signal }) => signal === exit.signal)) return []
  return [
    { rule: 'unexpected-exit', what: `${exit.what}: was asked to end and died (${how})`, evidence: [...kills, exit] },
  ]
}

function checkMemory(history: readonly Entry[], { growthMiB }: Limits): Violation[] {
  const samples = Map.groupBy(ofKind(history, 'memory'), ({ what }) => what)
  return [...samples].flatMap(([what, [first, ...rest]]): Violation[] => {
    const peak = rest.toSorted((a, b) => b.rssMiB - a.rssMiB)[0]
    if (!first || !peak || peak.rssMiB - first.rssMiB <= growthMiB) return []
    const grown = Math.round(peak.rssMiB - first.rssMiB)
    return [{ rule: 'memory-growth', what: `${what}: grew by ${grown} MiB`, evidence: [first, peak] }]
  })
}
