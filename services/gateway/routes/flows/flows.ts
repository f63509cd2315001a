import type { Request, RequestHandler } from 'express'
import { ignoredFieldWarnings } from '../../../../shared/platform/api/ignored-fields.ts'
import type { UsageReport } from '../../../../shared/tenancy/usage/report.ts'
import type { FlowChecks } from '../../../../shared/work/flows/check/check.ts'
import { refusedCheck } from '../../../../shared/work/flows/check/check.ts'
import type { EvaluationHistory } from '../../../../shared/work/flows/evaluate/history.ts'
import type { FlowMemory } from '../../../../shared/work/flows/flow-memory.ts'
import { toYaml } from '../../../../shared/work/flows/folder.ts'
import type { FlowLibrary } from '../../../../shared/work/flows/library.ts'
import { type Flow, servedVersion } from '../../../../shared/work/flows/port.ts'
import type { FlowSummary } from '../../../../shared/work/flows/stored-flows.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { ignoredFields, type ReadBody } from '../../bodies/body.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { FLOW, FLOW_VERSION, pageRequestOf, pathId, queryFlag, queryNumber } from '../../params.ts'
import { requires } from '../requires.ts'
import type { FlowRunSurface } from './flow-runs.ts'

type LibraryCall =
  | 'list'
  | 'get'
  | 'published'
  | 'definitionOf'
  | 'put'
  | 'publish'
  | 'rollback'
  | 'remove'
  | 'revisions'
  | 'catalogue'

/** The services behind the flow endpoints. They exist in a process with a store. */
export type FlowSurface = {
  library: Pick<FlowLibrary, LibraryCall>
  memory: Pick<FlowMemory, 'list' | 'add' | 'remove'>
  checks: Pick<FlowChecks, 'check'>
  evaluations: Pick<EvaluationHistory, 'list'>
  /** The figures of a flow's recent runs, by the flow's name. */
  figures: UsageReport['flows']
  /** `undefined` without a master key: flows can be edited, but no provider can be called. */
  execution: FlowRunSurface | undefined
}

type Deps = { flows: FlowSurface | undefined; readBody: ReadBody }

/** Creates, changes, publishes and deletes flows (api.md "Named flows", D6.1, D6.2). Without a store every path answers 503. */
export function flowRoutes({ flows, readBody }: Deps): RouteTable {
  const stored = requires('flows', flows)
  return {
    '/flows': { get: stored(list) },
    // A PUT goes on to the next path, whose handler refuses the reserved name (D6.1).
    '/flows/tools': {
      get: stored(catalogue),
      otherwise: (req, _res, next) => (req.method === 'PUT' ? next('route') : next()),
    },
    '/flows/:name': { get: stored(read), put: stored(put(readBody)), delete: stored(remove) },
    '/flows/:name/check': { post: stored(check(readBody)) },
    '/flows/:name/publish': { post: stored(publish) },
    '/flows/:name/rollback/:version': { post: stored(rollback) },
    '/flows/:name/revisions': { get: stored(revisions) },
    '/flows/:name/evaluations': { get: stored(listEvaluations) },
  }
}

type Create = (flows: FlowSurface) => RequestHandler

const list: Create =
  ({ library, figures }) =>
  async (req, res) => {
    const figuresOf = queryFlag(req, 'figures') ? await figures(tenantOf(res)) : undefined
    const { flows, next_cursor } = await library.list(tenantOf(res), pageRequestOf(req))
    const shown = flows.map((flow) => ({
      ...answerOf(flow),
      ...(figuresOf && { figures: figuresOf(flow.name) }),
    }))
    res.json({ flows: shown, next_cursor })
  }

const catalogue: Create =
  ({ library }) =>
  (_req, res) => {
    const tools = library.catalogue()
    res.json({ tools, count: tools.length })
  }

const read: Create =
  ({ library }) =>
  async (req, res) => {
    const flow = await library.get(tenantOf(res), flowName(req))
    if (wantsYaml(req)) res.type('application/yaml').send(await toYaml(flow))
    else res.json(answerOf(flow))
  }

const put =
  (readBody: ReadBody): Create =>
  ({ library }) =>
  async (req, res) => {
    const name = flowName(req)
    const kept = keepsPublished(req)
    const body = await readBody(req, res, 'FlowRequest')
    const ignored = ignoredFields(res)
    const options = { ...kept, ...(ignored.length > 0 && { ignored_fields: ignored }) }
    res.json(savedAnswerOf(await library.put(tenantOf(res), name, body, options)))
  }

const remove: Create =
  ({ library }) =>
  async (req, res) => {
    await library.remove(tenantOf(res), flowName(req))
    res.json({ status: 'deleted' })
  }

const publish: Create =
  ({ library }) =>
  async (req, res) => {
    const requirePassRate = queryNumber(req, 'require_pass_rate', [0, 1])
    const options = requirePassRate === undefined ? {} : { requirePassRate }
    res.json(savedAnswerOf(await library.publish(tenantOf(res), flowName(req), options)))
  }

const rollback: Create =
  ({ library }) =>
  async (req, res) => {
    const version = Number(pathId(req, 'version', FLOW_VERSION))
    const options = { ...keepsPublished(req), publishes: queryFlag(req, 'publish') }
    res.json(answerOf(await library.rollback(tenantOf(res), flowName(req), version, options)))
  }

const revisions: Create =
  ({ library }) =>
  async (req, res) => {
    const newest = await library.revisions(tenantOf(res), flowName(req))
    res.json({ revisions: newest, next_cursor: null })
  }

const check =
  (readBody: ReadBody): Create =>
  ({ checks }) =>
  async (req, res) => {
    const name = flowName(req)
    const checked = await readBody(req, res, 'FlowCheckRequest').then(
      (body) => checks.check(tenantOf(res), name, body),
      refusedCheck,
    )
    const warnings = [...(ignoredFieldWarnings(ignoredFields(res)).warnings ?? []), ...checked.warnings]
    res.json({ ...checked, warnings })
  }

const listEvaluations: Create =
  ({ evaluations }) =>
  async (req, res) => {
    res.json(await evaluations.list(tenantOf(res), flowName(req), pageRequestOf(req)))
  }

const flowName = (req: Request): string => pathId(req, 'name', FLOW)

/** Whether the published version stays in use while the draft is saved (D26.3). */
const keepsPublished = (req: Request): { keeps_published?: true } =>
  queryFlag(req, 'keep_published') ? { keeps_published: true } : {}

const wantsYaml = (req: Request): boolean =>
  req.accepts(['application/json', 'application/yaml']) === 'application/yaml'

/** A flow as the API shows it (D6.2). */
function answerOf(flow: FlowSummary | Flow): object {
  const { uid: _uid, is_built_in: built_in, ignored_fields: _fields, kept_version: _kept, ...shown } = flow
  return { ...shown, served_version: servedVersion(flow), built_in }
}

/** The same, with a list of fields that may be misspelled. */
const savedAnswerOf = (flow: Flow): object => ({ ...answerOf(flow), ...ignoredFieldWarnings(flow.ignored_fields) })
