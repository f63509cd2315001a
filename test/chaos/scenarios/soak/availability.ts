import type { Guarantee } from '../../../harness/guarantee.ts'
import type { Windows } from './faults/windows.ts'
import type { Probe } from './load/routes.ts'

const WANTED_PERCENT = 99.9
const MAX_DETAIL_CHARS = 2_000

/** The requests that no fault could touch, and those of them that failed. */
export function unaffected(probes: readonly Probe[], windows: Windows): { count: number; failed: Probe[] } {
  const free = probes.filter((probe) => !windows.touches(probe.from, probe.to, probe))
  return { count: free.length, failed: free.filter(({ word }) => word !== 'ok') }
}

/** Requests and runs that met a limit: 429 at any time, and 503 where no fault explains it. */
export function refusals(probes: readonly Probe[], windows: Windows): string[] {
  const busy = unaffected(probes, windows).failed.filter(({ word }) => /^(status )?503\b/.test(word))
  const limited = probes.filter(({ word }) => /^(status )?429\b/.test(word))
  return [...limited, ...busy].map(({ route, word }) => `${route}: ${word}`)
}

export function availabilityRow(all: readonly { count: number; failed: readonly Probe[] }[]): Guarantee {
  const count = all.reduce((sum, each) => sum + each.count, 0)
  const failed = all.flatMap((each) => each.failed)
  const value = count === 0 ? 0 : (100 * (count - failed.length)) / count
  const byRoute = Map.groupBy(failed, ({ route, word }) => `${route}: ${word.replaceAll(/\w*[0-9a-f]{16,}/g, '…')}`)
  const what = [...byRoute].map(([name, { length }]) => `${length} x ${name}`).join('; ')
  return {
    title: 'availability of routes that no fault touches',
    value: Math.round(value * 1_000) / 1_000,
    unit: '%',
    goal: { atLeast: WANTED_PERCENT },
    detail: `${failed.length} of ${count} failed; ${what}`.slice(0, MAX_DETAIL_CHARS),
  }
}
