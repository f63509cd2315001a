/** One limit of an account as its provider reports it: the limit of a minute, what is left of it, and when it is full again. */
export type ToldLimit = { limit: number; left: number; resetMs: number | undefined }

/** The account's limits in a response; a limit that is not reported is missing. */
export type ToldLimits = { tokens?: ToldLimit | undefined; requests?: ToldLimit | undefined }

type HeaderOf = (name: string) => unknown
/** The names of the headers with one limit. */
type LimitHeaders = { limit: string; left: string; reset: string }

const namesBy = (nameOf: (part: string) => string): LimitHeaders => ({
  limit: nameOf('limit'),
  left: nameOf('remaining'),
  reset: nameOf('reset'),
})
const openAi = (kind: string) => namesBy((part) => `x-ratelimit-${part}-${kind}`)
const anthropic = (kind: string) => namesBy((part) => `anthropic-ratelimit-${kind}-${part}`)

/** The headers of OpenAI and its copies, and those of Anthropic, whose `tokens` belong to its tightest limit. */
const FAMILIES = [
  { tokens: [openAi('tokens')], requests: [openAi('requests')] },
  { tokens: [anthropic('tokens'), anthropic('input-tokens')], requests: [anthropic('requests')] },
]

const NONE: ToldLimits = {}

/** Reads the limits in the headers of a response. Headers without a number are ignored. */
export function toldLimits(headerOf: HeaderOf, now = Date.now()): ToldLimits {
  for (const family of FAMILIES) {
    const tokens = firstLimit(family.tokens, headerOf, now)
    const requests = firstLimit(family.requests, headerOf, now)
    if (tokens || requests) return { tokens, requests }
  }
  return NONE
}

function firstLimit(all: readonly LimitHeaders[], headerOf: HeaderOf, now: number): ToldLimit | undefined {
  for (const names of all) {
    const limit = count(headerOf(names.limit))
    const left = count(headerOf(names.left))
    if (limit && left !== undefined)
      return { limit, left: Math.min(left, limit), resetMs: resetIn(headerOf(names.reset), now) }
  }
  return undefined
}

const count = (value: unknown): number | undefined =>
  typeof value === 'string' && /^\d{1,12}(?:\.\d+)?$/.test(value) ? Number(value) : undefined

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/** `6m0s`, `20ms`, a number of seconds, or a time of RFC 3339. */
function resetIn(text: unknown, now: number): number | undefined {
  if (typeof text !== 'string') return undefined
  if (/^(?:\d+(?:\.\d+)?(?:ms|[smh]))+$/.test(text)) {
    const pieces = [...text.matchAll(/([\d.]+)(ms|[smh])/g)]
    return pieces.reduce((sum, [, value, unit = '']) => sum + Number(value) * (UNIT_MS[unit] ?? 0), 0)
  }
  if (/^\d{1,9}(?:\.\d+)?$/.test(text)) return Number(text) * 1_000
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/** Google's form, in the body of a 429: `{"quotaId": "…TokensPerMinute…", "quotaValue": "250000"}`. Limits of a day are ignored. */
export function quotaLimits(violations: readonly unknown[]): ToldLimits {
  const told: ToldLimits = {}
  for (const violation of violations) {
    const { quotaId, quotaMetric, quotaValue } = (violation ?? {}) as Record<string, unknown>
    const limit = count(quotaValue)
    if (!limit || !/PerMinute/.test(String(quotaId))) continue
    const kind = /token/i.test(String(quotaId) + String(quotaMetric)) ? 'tokens' : 'requests'
    told[kind] = { limit, left: 0, resetMs: undefined }
  }
  return told
}
