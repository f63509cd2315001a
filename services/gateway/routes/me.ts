import type { RequestHandler } from 'express'
import { MAX_TRIES } from '../../../shared/agent/engine/answers/typed-answer.ts'
import { MAX_WAITING_STEERS } from '../../../shared/agent/engine/messages/steering.ts'
import { MAX_ATTACHMENTS, MAX_PIXELS } from '../../../shared/agent/files/attachable.ts'
import { MAX_SHOWN_BYTES } from '../../../shared/agent/providers/shown-files.ts'
import { MAX_CLIENT_TOOLS_CHARS } from '../../../shared/agent/tools/client-tools.ts'
import { MAX_ATTACHMENT_BYTES } from '../../../shared/kernel/attachment.ts'
import { MAX_SCHEMA_BYTES } from '../../../shared/platform/schemas/budget.ts'
import { scopesOf, subjectOf, tenantOf } from '../middleware/auth.ts'
import type { ConfigSurface } from './config/enabled.ts'
import type { FlowSurface } from './flows/flows.ts'
import { MAX_OUTPUT_CHARS, MAX_PARTS_CHARS } from './tool-calls.ts'

/** Facts of this server that every caller may know. */
export type ServerFacts = {
  /** The product's version. */
  version: string
  /** The server's own model; `null` without one. */
  model: string | null
  permissionTimeoutMs: number
  clientToolTimeoutMs: number
  runResumeMs: number
  /** Requests per minute and client; 0 for no limit. */
  rateLimitRpm: number
}

type Deps = {
  basePath: string
  facts: ServerFacts
  toolBox: { readonly tools: readonly { name: string }[] }
  /** `undefined` when the process has no store. */
  stored: object | undefined
  /** `undefined`: runtime configuration is disabled. */
  configured: { config: ConfigSurface } | undefined
  /** `undefined` when the process has no store. */
  queued: { flows: FlowSurface; plans: object | undefined; dispatches: object | undefined } | undefined
  pages: { hasExplorer: boolean }
}

/** Tells the caller who it is, what it may do, and what this server offers (D19). */
export function describeCaller(deps: Deps): RequestHandler {
  const { basePath, facts } = deps
  const config = deps.configured?.config
  return async (_req, res) => {
    const tenant = tenantOf(res)
    const [limits, engine] = await Promise.all([config?.limits.known.of(tenant), config?.settings.engine(tenant)])
    res.json({
      tenant,
      subject: subjectOf(res),
      scopes: [...scopesOf(res)],
      version: facts.version,
      base_path: basePath,
      features: featuresOf(deps),
      limits: limits ? { ...limits, customers: undefined } : null, // What customers may cost is not for every caller.
      run_limits: RUN_LIMITS,
      rate_limit_rpm: facts.rateLimitRpm,
      permission_timeout_secs: facts.permissionTimeoutMs / 1000,
      client_tool_timeout_secs: facts.clientToolTimeoutMs / 1000,
      run_resume_secs: facts.runResumeMs / 1000,
      model: engine?.routing.main?.model ?? facts.model,
    })
  }
}

/** The features that are configured here. The list of tools may grow. */
const featuresOf = ({ toolBox, stored, configured, queued, pages }: Deps) => ({
  config: configured !== undefined,
  flows: queued?.flows.execution !== undefined,
  plans: queued?.plans !== undefined,
  dispatches: queued?.dispatches !== undefined,
  transcription: configured !== undefined,
  bash: toolBox.tools.some(({ name }) => name === 'Bash'),
  explorer: pages.hasExplorer,
  typed_answers: true,
  run_choices: true,
  files: stored !== undefined,
  artifacts: stored !== undefined,
  client_tools: true,
  steering: true,
  forks: true,
})

/** Limits of one run's request, as the API document has them. A text that steers a run has the limit of a prompt. */
const RUN_LIMITS = {
  prompt_chars: 100_000,
  response_schema_bytes: MAX_SCHEMA_BYTES,
  response_schema_tries: MAX_TRIES,
  allowed_tools: 64,
  client_tools: 64,
  client_tools_chars: MAX_CLIENT_TOOLS_CHARS,
  client_tool_output_chars: MAX_OUTPUT_CHARS,
  client_tool_parts_chars: MAX_PARTS_CHARS,
  steers_waiting: MAX_WAITING_STEERS,
  metadata_pairs: 16,
  attachments: MAX_ATTACHMENTS,
  attachment_bytes: MAX_SHOWN_BYTES,
  image_bytes: MAX_ATTACHMENT_BYTES,
  image_pixels: MAX_PIXELS,
}
