import { type Block, EMPTY_RUN, type RunView, type SubagentBlock } from '../../../shared/client/client.ts'
import { dollars, duration, tokens } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'
import type { Style } from '../text/style.ts'

/** A block, and how many sub-agents contain it. */
export type Placed = { block: Block; depth: number }

/** All blocks of a run. The blocks of a sub-agent follow the block that contains it. */
export const placed = (blocks: readonly Block[], depth = 0): Placed[] =>
  blocks.flatMap((block) => [{ block, depth }, ...(block.kind === 'subagent' ? placed(block.blocks, depth + 1) : [])])

export const subagentTitle = ({ start }: SubagentBlock): string =>
  plainLine(start.description ?? start.model ?? start.subagent_id)

/** The totals of a run: `2 turns · 12.4K in (70 % cached) · 1.1K out · ctx 8.1K · $0.031 · 6.2 s`. */
export function totals(
  view: RunView | undefined,
  { contextTokens, elapsedMs, style }: { contextTokens: number; elapsedMs: number; style: Style },
): string {
  const { turn_count: turns, ...used } = view?.usage ?? EMPTY_RUN.usage
  const cached = used.input_tokens > 0 ? Math.round((100 * used.cache_read_tokens) / used.input_tokens) : 0
  return [
    `${turns} ${turns === 1 ? 'turn' : 'turns'}`,
    `${tokens(used.input_tokens)} in${cached > 0 ? ` (${cached} % cached)` : ''}`,
    `${tokens(used.output_tokens)} out`,
    ...(contextTokens > 0 ? [`ctx ${tokens(contextTokens)}`] : []),
    dollars(used.cost_usd),
    duration(elapsedMs),
  ].join(style.symbols.sep)
}
