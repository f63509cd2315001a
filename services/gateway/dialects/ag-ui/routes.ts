import type { RequestHandler } from 'express'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { SESSION } from '../../params.ts'
import type { DialectDeps } from '../dialect.ts'
import type { PermissionAnswer } from '../shared/conversation.ts'
import { Fields } from '../shared/fields.ts'
import { readMessages } from '../shared/messages.ts'
import { streamOf } from '../shared/response-stream.ts'
import { AG_UI_WIRE, AgUiProjection } from './projection.ts'

/** AG-UI: the id of a thread is that of its session. */
export function agUiRoutes(deps: DialectDeps): RouteTable {
  return { '/ag-ui': { post: deps.admit(run(deps)) } }
}

function run({ broker, conversations, readBody, relay }: DialectDeps): RequestHandler {
  return async (req, res) => {
    const fields = new Fields(await readBody(req, res, 'DialectRequest'))
    const [threadId, runId, answers] = [fields.text('threadId'), fields.text('runId'), fields.objects('resume')]
    if (!SESSION.pattern.test(threadId)) throw fields.wrong('threadId', `an id that matches ${SESSION.pattern.source}`)
    if (!SESSION.pattern.test(runId)) throw fields.wrong('runId', `an id that matches ${SESSION.pattern.source}`)
    if (fields.objects('tools').length > 0)
      throw fields.wrong('tools', 'an empty list: the tools are those of this server, which calls them itself')
    const facts = (engineRunId: string) => new AgUiProjection({ threadId, runId, engineRunId })
    if (answers.length > 0) {
      const resumed = answers.map(resumeOf)
      const [{ engineRunId } = { engineRunId: '' }] = resumed
      await conversations.answer(
        res,
        threadId,
        resumed.map(({ answer }) => answer),
      )
      const known = new Set(resumed.map(({ answer }) => answer.id))
      const frames = await broker.followRun(tenantOf(res), engineRunId, 0)
      return relay({ runId: engineRunId, ...streamOf({ frames, known }, facts(engineRunId), AG_UI_WIRE) }, res)
    }
    const { prompt, seed } = readMessages(fields.objects('messages'), '/messages')
    const sent = { sessionId: threadId, message: { prompt }, seed, key: `${threadId} ${runId}` }
    const started = await conversations.send(res, 'ag-ui', sent)
    relay({ runId: started.runId, ...streamOf(started, facts(started.runId), AG_UI_WIRE) }, res)
  }
}

const INTERRUPT = /^(run_[0-9a-f]{32})\/(perm_[0-9a-f]{32})$/

/** The id of an interrupt names the run that waits, and its request. */
function resumeOf(entry: Fields): { engineRunId: string; answer: PermissionAnswer } {
  const [, engineRunId, id] = INTERRUPT.exec(entry.text('interruptId')) ?? []
  if (engineRunId === undefined || id === undefined)
    throw entry.wrong('interruptId', 'the id of an interrupt of this server')
  if (entry.get('status') === 'cancelled') return { engineRunId, answer: { id, allow: false, reason: 'cancelled' } }
  const payload = entry.object('payload')
  const [allow, reason] = [payload.optionalFlag('approved'), payload.optionalText('reason')]
  if (allow === undefined) throw invalidRequest('approved must be true or false', { param: `${payload.at}/approved` })
  const input = allow && payload.has('editedArgs') ? payload.object('editedArgs').value : undefined
  return { engineRunId, answer: { id, allow, ...(reason && { reason }), ...(input && { input }) } }
}
