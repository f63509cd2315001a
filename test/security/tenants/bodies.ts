import { transcriptionForm } from '../api.ts'
import type { Body, Ids } from './ids.ts'

/** The bodies that name what belongs to somebody, for each route that takes one. A route that is missing here breaks the promise. */
export const BODIES: Record<string, (ids: Ids) => readonly (Body | undefined)[]> = {
  'POST /agent/run': ({ customer, session, instance, run }) => [
    { prompt: 'hello', customer_id: customer },
    { prompt: 'hello', session_id: session, run_id: run },
    { prompt: 'hello', provider_instance: instance },
  ],
  'POST /sessions': ({ session }) => [{ session_id: session }],
  'POST /sessions/:id/messages': () => [{ prompt: 'hello' }],
  'POST /sessions/:id/permissions/:request_id': () => [{ allow: true }, { allow: false }],
  'PUT /config/engine': ({ instance }) => [
    { routing: { main: { instance, model: 'm' } } },
    { routing: { compact: { instance, model: 'm', fallback_instance: instance, fallback_model: 'm' } } },
  ],
  'PUT /config/secrets/:name': () => [{ value: 'a value of the other tenant' }],
  'PUT /config/instances/:name': ({ secret }) => [{ type: 'openai', secret }, { type: 'openai' }],
  'POST /config/instances/:name/discover': () => [undefined],
  'POST /config/instances/:name/probe': () => [{ model: 'm' }],
  'POST /audio/transcriptions': ({ instance }) => [transcriptionForm(instance)],
}
