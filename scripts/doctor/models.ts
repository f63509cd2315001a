import { createModels } from '../../services/wiring/models/create-models.ts'
import { apiBase } from '../../shared/agent/providers/base-url.ts'
import type { Failure, ModelRequest, ModelRoute } from '../../shared/agent/providers/port.ts'
import { oneByOne } from '../../shared/kernel/async/batch.ts'
import type { Config } from '../../shared/platform/config/config.ts'
import type { Check, Finding } from './finding.ts'

const WITHIN_MS = 60_000

const REQUEST: Omit<ModelRequest, 'model'> = {
  messages: [{ role: 'user', text: 'Reply with the single word: ok' }],
  tools: [{ name: 'report', description: 'Reports something.', inputSchema: { type: 'object', properties: {} } }],
  stopSequences: [],
}

/** Whether the models of MODEL and FALLBACK_MODEL answer one small request each, and take tools. */
export const checkModels: Check = async ({ config }) => {
  const { primary, fallback } = await createModels(config)
  const findings = await Promise.all([
    primary && checkModel('MODEL', primary, config.model),
    fallback && checkModel('FALLBACK_MODEL', fallback, config.fallback),
  ])
  return findings.flatMap((finding) => finding ?? [])
}

async function checkModel(prefix: string, route: ModelRoute, target: Config['model']): Promise<Finding[]> {
  const failure = await failureOf(route)
  if (!failure && route.provider.takesTools?.(route.model) === false) return [withoutTools(prefix, route)]
  if (!failure || !target) return []
  const { origin, pathname } = apiBase(target.provider, target.baseUrl)
  const problem = `${prefix}=${route.model} at ${origin}${pathname} gives no answer: ${failure.message}`
  return [{ problem, cure: cureOf(failure, prefix) }]
}

const withoutTools = (prefix: string, { model }: ModelRoute): Finding => ({
  problem: `${prefix}=${model} takes no tools: agents with this model can only write`,
  cure: `set ${prefix} to a model that takes tools, or let its server parse its tool calls`,
})

async function failureOf({ provider, model }: ModelRoute): Promise<Failure | undefined> {
  const signal = AbortSignal.timeout(WITHIN_MS)
  for await (const part of oneByOne(provider.stream({ ...REQUEST, model }, signal)))
    if (part.type === 'failure') return part.failure
  return signal.aborted ? TOO_SLOW : undefined
}

const TOO_SLOW: Failure = {
  code: 'timeout',
  message: `it did not end its answer within ${WITHIN_MS / 1_000} s`,
  reason: 'too_slow',
  isRetryable: true,
  isFailover: true,
}

function cureOf({ code, reason }: Failure, prefix: string): string {
  if (code === 'provider_auth') return `set ${prefix}_API_KEY to a key that the provider accepts`
  if (reason === 'http_404')
    return `set ${prefix} to a model that the provider lists, and ${prefix}_BASE_URL to the address in its documentation`
  if (reason === 'out_of_credit') return 'add credit at the provider, or use the key of another account'
  if (code === 'provider_rejected') return `correct ${prefix} or ${prefix}_OPTIONS as the provider says`
  if (code === 'provider_rate_limited') return 'wait and run the doctor again, or raise the limit at the provider'
  return `correct ${prefix}_BASE_URL, or let this machine reach it, and look whether the provider is in service`
}
