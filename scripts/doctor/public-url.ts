import { isJsonObject, parseJson } from '../../shared/kernel/json.ts'
import { type Check, type Finding, type Patient, unreachable } from './finding.ts'

const WITHIN_MS = 30_000
/** More than there are gateways, since each may count for itself. */
const TRIES = 8
/** The demo model waits between its two lines. Another model answers the sentence. */
const PROMPT = 'Count from one to twenty in words.\n/say one\n/sleep 1500\n/say two'
/** Events that all arrive within this share of the whole time were held back. */
const HELD_BACK = 0.2
const MIN_RUN_MS = 500

/** Whether clients can choose the address that they are counted under, and whether all are counted as one. */
export const checkTrustedHops: Check = async (patient) => {
  const { publicUrl, config } = patient
  if (publicUrl === undefined || config.rateLimitRpm === 0) return []
  const answers = []
  for (let n = 0; n < TRIES; n++) {
    const forged = { 'x-forwarded-for': `192.0.2.${n + 1}` }
    const answer = await fetch(`${publicUrl}/tools`, { headers: { ...headersOf(patient), ...forged } }).catch(String)
    if (typeof answer === 'string') return unreachable(publicUrl, answer)
    await answer.arrayBuffer()
    answers.push(answer)
  }
  const left = answers.map(({ headers }) => Number(headers.get('ratelimit-remaining') ?? Number.NaN))
  if (left.some(Number.isNaN)) return (await isOurs(publicUrl)) ? NO_LIMIT : OTHER_PRODUCT
  const isForgeable = new Set(left).size === 1
  const isBehindProxy = answers.some(
    ({ headers }) => headers.has('via') || /nginx|envoy|cloud|haproxy/i.test(headers.get('server') ?? ''),
  )
  if (isForgeable) return [FORGEABLE]
  return isBehindProxy && config.trustProxy === false ? [ALL_AS_ONE] : []
}

const NO_LIMIT: Finding[] = [
  {
    problem: "the server's rate limit is off, so the counting of clients cannot be checked",
    cure: 'set RATE_LIMIT_RPM at the server, or run the doctor with RATE_LIMIT_RPM=0 as the server has it',
  },
]
const OTHER_PRODUCT: Finding[] = [
  {
    problem: 'what answers at the public URL is not this product, or not its base path',
    cure: 'give the URL up to /api/v1 or /v1',
  },
]
const FORGEABLE: Finding = {
  problem: 'clients choose the address that they are counted under (X-Forwarded-For), so the rate limit does not hold',
  cure: 'set TRUST_PROXY to the exact number of proxies in front, or to their CIDR ranges',
}
const ALL_AS_ONE: Finding = {
  problem: 'a proxy is in front and TRUST_PROXY is false, so all clients are counted as one',
  cure: 'set TRUST_PROXY to the number of proxies in front, or to their CIDR ranges',
}

/** Whether the health answer is this product's. */
async function isOurs(publicUrl: string): Promise<boolean> {
  const answer = await fetch(`${publicUrl}/health`).catch(() => undefined)
  const body = answer && parseJson(await answer.text())
  return isJsonObject(body) && body['status'] === 'ok' && answer?.headers.has('x-request-id') === true
}

/** Starts a short run through the public URL and times its frames. It costs a few tokens when the model is a real one. */
export const checkStreaming: Check = async (patient) => {
  if (patient.publicUrl === undefined) return []
  const startedAt = performance.now()
  const body = JSON.stringify({ prompt: PROMPT, max_turns: 1 })
  const headers = { ...headersOf(patient), 'content-type': 'application/json' }
  const signal = AbortSignal.timeout(WITHIN_MS)
  try {
    const answer = await fetch(`${patient.publicUrl}/agent/run`, { method: 'POST', headers, body, signal })
    if (answer.status !== 200 || !answer.body) return [await refused(answer)]
    const reader = answer.body.getReader()
    await reader.read()
    const firstMs = performance.now() - startedAt
    while (!(await reader.read()).done);
    const wholeMs = performance.now() - startedAt
    const isHeldBack = wholeMs - firstMs < wholeMs * HELD_BACK
    return isHeldBack && wholeMs >= MIN_RUN_MS ? [heldBack(firstMs)] : []
  } catch (cause) {
    return unreachable(patient.publicUrl, cause)
  }
}

async function refused(answer: Response): Promise<Finding> {
  const text = (await answer.text()).slice(0, 300)
  const cure =
    answer.status === 401 ? 'set DOCTOR_TOKEN to an access token' : 'do what the answer says, and run the doctor again'
  return { problem: `a run through the public URL is refused with ${answer.status}: ${text}`, cure }
}

const heldBack = (firstMs: number): Finding => ({
  problem: `a proxy holds event streams back: the first frame came after ${(firstMs / 1_000).toFixed(1)} s, together with the last`,
  cure: 'switch response buffering and compression off in the proxy (nginx: proxy_buffering off), as in deploy/nginx/nginx.conf',
})

const headersOf = ({ token, config }: Patient): Record<string, string> => {
  const bearer = token ?? config.apiToken
  return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
}
