import { type Guarantee, none } from '../../../harness/guarantee.ts'
import type { Rule, Violation } from '../../history.ts'
import { LIMITS, type Limits } from '../../limits.ts'

/**
 * Limits while several faults come together: a stream whose worker dies may have a gateway that is frozen for ten seconds. A worker that is
 * frozen for about four seconds may be evicted or not.
 */
export const SOAK_LIMITS: Limits = { ...LIMITS, termMs: 25_000, closeMs: 15_000, deadMs: 5_500 }

/** Faults that must never happen, and the rules of the checker that find them. */
const INVARIANTS: readonly (readonly [string, readonly Rule[]])[] = [
  ['N1 streams that hang or break without a reason', ['stream-without-end']],
  ['N2 ledger entries that were lost, doubled or made up', ['ledger-mismatch']],
  ['N3 effects that happened twice or too late', ['extra-effect', 'two-winners']],
  ['N4 data of one tenant shown to another', ['tenant-crossing']],
  ['N5 holes and changes in streams', ['stream-altered', 'events-after-end']],
  ['N6 answers of ok that were not honoured', ['reply-not-honoured', 'allowed-without-reply']],
  ['N7 secrets in outputs', ['secret-leaked']],
  ['N8 processes that died without being hit', ['unexpected-exit']],
  ['N9 processes whose memory grew without bounds', ['memory-growth']],
  ['N10 requests accepted without a valid token', ['forged-token-accepted', 'wrong-refusal']],
]

/** One row for each invariant; the detail shows how much was checked and the first violation. */
export function invariantRows(found: readonly Violation[], checked: Readonly<Record<string, string>>): Guarantee[] {
  return INVARIANTS.map(([title, rules]) => {
    const broken = found.filter(({ rule }) => rules.includes(rule))
    const [id = ''] = title.split(' ')
    return none(title, broken.length, [checked[id], broken[0]?.what].filter(Boolean).join('; '))
  })
}
