import { gatewayFor } from '../../sessions.ts'
import type { World } from '../../world.ts'
import { readLedgers, strays, toHistory } from '../ledger/ledgers.ts'
import type { Seen } from './load/part.ts'

/** The number of entries of a part's customers, and those without a matching run. */
export type Ledgers = { entries: number; strays: string[] }

/** Reads the ledgers of a part's customers into the history. */
export async function readPart(
  world: World,
  { names, runs }: Seen['customers'],
  headers: Readonly<Record<string, string>>,
): Promise<Ledgers> {
  const entries = await readLedgers(gatewayFor(world, 0).url, names, headers)
  world.history.push(...toHistory(entries))
  return {
    entries: entries.length,
    strays: strays(entries, runs).map(({ customer, input }) => `${customer}: ${input}`),
  }
}
