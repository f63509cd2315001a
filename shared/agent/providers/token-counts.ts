import type { CountedUsage, Usage } from './port.ts'

/** More tokens than any call has; sums of smaller counts stay exact. */
const MAX_TOKENS = 10_000_000_000

const isCount = (tokens: number): boolean => Number.isInteger(tokens) && tokens >= 0 && tokens <= MAX_TOKENS

const countOrZero = (tokens: number): number => (isCount(tokens) ? tokens : 0)

type Counts = Omit<Usage, 'input' | 'output'> & Record<'input' | 'output', number | undefined>

/**
 * Returns the provider's own counts if they are plausible: whole numbers from 0. `undefined` without counts, or with an invalid input or output:
 * the usage is then estimated, so that no server can lower its tenant's spending. Invalid counts of cached tokens become 0.
 */
export function checkedUsage({ input, output, cacheRead, cacheWrite }: Counts): CountedUsage | undefined {
  const [total = 0, written = 0] = [input, output]
  if (!isCount(total) || !isCount(written) || total + written === 0) return undefined
  const cached = { cacheRead: countOrZero(cacheRead), cacheWrite: countOrZero(cacheWrite) }
  return { ...cached, ...(input !== undefined && { input }), ...(output !== undefined && { output }) }
}
