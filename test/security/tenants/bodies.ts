import { type Call, fileForm, transcriptionForm } from '../api.ts'
import type { Body, Ids } from './ids.ts'

const DEFINITION = { input_schema: { type: 'object' }, output_schema: { type: 'object' } }
const PLAN = { steps: [{ id: 'a', prompt: 'hello' }] }

const withFile = (file_id: string) => ({ role: 'user', content: 'hello', attachments: [{ file_id }] })
const stepWith = (file_id: string) => ({ id: 'a', prompt: 'hello', attachments: [{ file_id }] })
const addressOf = (file: string) => `/api/v1/files/${file}/content`

const uiAnswer = (id: string) => ({
  type: 'dynamic-tool',
  state: 'approval-responded',
  approval: { id, approved: true },
})

/** The bodies that name what belongs to somebody, for each route that takes one. A route that is missing here breaks the promise. */
export const BODIES: Record<string, (ids: Ids) => readonly (Body | undefined)[]> = {
  'POST /agent/run': ({ customer, session, instance, run, file }) => [
    { prompt: 'hello', attachments: [{ file_id: file }] },
    { prompt: 'hello', customer_id: customer },
    { prompt: 'hello', session_id: session, run_id: run },
    { prompt: 'hello', provider_instance: instance },
  ],
  'POST /sessions': ({ session, file }) => [
    { session_id: session },
    { messages: [withFile(file), { role: 'assistant', content: 'hello' }] },
  ],
  'PATCH /sessions/:id': () => [{ title: 'mine' }],
  'POST /sessions/:id/messages': ({ file }) => [
    { prompt: 'hello' },
    { prompt: 'hello', attachments: [{ file_id: file }] },
  ],
  'POST /sessions/:id/fork': ({ run }) => [{ at: run }],
  'POST /runs/:run_id/steer': () => [{ prompt: 'mine' }],
  'POST /sessions/:id/permissions/:request_id': () => [{ allow: true }, { allow: false }],
  'POST /runs/:run_id/tool-calls/:tool_use_id': () => [{ output: 'mine' }],
  'PUT /config/engine': ({ instance }) => [
    { routing: { main: { instance, model: 'm' } } },
    { routing: { compact: { instance, model: 'm', fallback_instance: instance, fallback_model: 'm' } } },
  ],
  'PUT /config/secrets/:name': () => [{ value: 'a value of the other tenant' }],
  'PUT /config/instances/:name': ({ secret }) => [{ type: 'openai', secret }, { type: 'openai' }],
  'PUT /config/limits': () => [{ tokens_per_day: 1_000_000_000 }],
  'PUT /config/webhooks/:name': () => [{ url: 'https://hooks.example.com/', events: ['run.ended'] }],
  'POST /config/webhooks/:name/test': () => [undefined],
  'POST /config/webhooks/:name/deliveries/:id/retry': () => [undefined],
  'POST /config/instances/:name/discover': () => [undefined],
  'POST /config/instances/:name/probe': () => [{ model: 'm' }],
  'PUT /flows/:name': () => [DEFINITION],
  'POST /flows/:name/check': () => [undefined, DEFINITION],
  'POST /flows/:name/publish': () => [undefined],
  'POST /flows/:name/rollback/:version': () => [undefined],
  'POST /flows/:name/memory': () => [{ content: 'hello' }],
  'POST /flows/:name/run': ({ instance }) => [
    { input: {}, provider_instance: instance, model: 'm' },
    { input: {}, provider_instance: 'openai-compatible', model: 'm' },
  ],
  'POST /flows/:name/batch': ({ instance, file }) => [
    { items: [{ input: {} }], provider_instance: instance, model: 'm' },
    { file_id: file, provider_instance: 'openai-compatible', model: 'm' },
  ],
  'POST /batches/:id/cancel': () => [undefined],
  'POST /flows/:name/evaluate': ({ instance }) => [undefined, { provider_instance: instance, model: 'm' }],
  'POST /plans/submit': ({ file }) => [PLAN, { ...PLAN, parallel: true }, { steps: [stepWith(file)] }],
  'POST /plans/check': () => [PLAN],
  'POST /plans/:id/cancel': () => [undefined],
  'POST /plans/:id/retry': () => [undefined],
  'POST /plans/schedules/:name/run': () => [undefined],
  'PUT /plans/schedules/:name': ({ file }) => [
    { every_secs: 86_400, plan: PLAN },
    { every_secs: 86_400, plan: { steps: [stepWith(file)] } },
  ],
  'POST /ui/chat': ({ session, run, permission, file }) => [
    {
      id: 'files',
      messages: [{ role: 'user', parts: [{ type: 'file', mediaType: 'text/plain', url: addressOf(file) }] }],
    },
    { id: session, messages: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }] },
    { id: session, messages: [{ role: 'assistant', id: run, parts: [uiAnswer(permission)] }] },
  ],
  'POST /ag-ui': ({ session, run, permission, file }) => [
    {
      threadId: 'files',
      runId: 'r',
      messages: [{ role: 'user', content: [{ type: 'binary', mimeType: 'text/plain', id: file }] }],
    },
    { threadId: session, runId: 'r', messages: [{ role: 'user', content: 'hello' }] },
    {
      ...{ threadId: session, runId: 'r', messages: [] },
      resume: [{ interruptId: `${run}/${permission}`, status: 'resolved', payload: { approved: true } }],
    },
  ],
  'POST /a2a': ({ session, run, permission, plan, file }) => {
    const planTask = `task_plan_${plan.slice('plan_'.length)}_${session}`
    const task = `task_${run.slice('run_'.length)}_${session}`
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
    const answer = [{ data: { permissions: [{ id: permission, allow: true }] } }]
    const request = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })
    return [
      request('SendMessage', { message: { ...message, contextId: session } }),
      request('SendMessage', { message: { ...message, taskId: task, parts: answer } }),
      ...[task, planTask].flatMap((id) =>
        ['GetTask', 'CancelTask', 'SubscribeToTask'].map((method) => request(method, { id })),
      ),
      request('ListTasks', { contextId: session }),
      request('SendMessage', { message: { ...message, parts: [{ url: addressOf(file) }] } }),
    ]
  },
  'POST /mcp': ({ run, file }) => [
    { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: `agent-engine://files/${file}` } },
    { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'summarize', arguments: { text: 'hello' } } },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: run } },
  ],
  'POST /openai/v1/files': () => [fileForm('hello')],
  'POST /openai/v1/chat/completions': ({ file }) => [
    { model: 'main', messages: [{ role: 'user', content: 'hello' }] },
    { model: 'main', messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: file } }] }] },
  ],
  'POST /openai/v1/responses': ({ session, response, permission, file }) => [
    { model: 'main', input: [{ role: 'user', content: [{ type: 'input_file', file_id: file }] }] },
    { model: 'main', input: [{ role: 'user', content: [{ type: 'input_image', file_id: file }] }] },
    { model: 'main', input: 'hello', conversation: session },
    { model: 'main', input: 'hello', previous_response_id: response },
    {
      model: 'main',
      previous_response_id: response,
      input: [{ type: 'mcp_approval_response', approval_request_id: permission, approve: true }],
    },
  ],
  'POST /openai/v1/responses/:id/cancel': () => [undefined],
  'POST /files': () => [fileForm('hello')],
  'PATCH /files/:file_id': () => [undefined],
  'POST /audio/transcriptions': ({ instance }) => [transcriptionForm(instance)],
}

/** Requests that name something of the other tenant's at a built-in flow, which every tenant has. */
export const ON_BUILT_IN: readonly ((ids: Ids) => Call)[] = [
  () => ({ method: 'GET', path: '/flows/summarize/memory' }),
  ({ memory }) => ({ method: 'DELETE', path: `/flows/summarize/memory?entry_id=${memory}` }),
  ({ instance, key }) => ({
    method: 'POST',
    path: '/flows/summarize/run',
    headers: { 'idempotency-key': key },
    body: { input: { text: 'hello' }, provider_instance: instance, model: 'm' },
  }),
  ({ instance }) => ({
    method: 'POST',
    path: '/flows/summarize/run',
    body: {
      input: { text: 'hello' },
      provider_instance: 'openai-compatible',
      model: 'm',
      fallback_instance: instance,
      fallback_model: 'm',
    },
  }),
]
