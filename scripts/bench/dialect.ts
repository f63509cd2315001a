import { randomUUID } from 'node:crypto'

/** How to start a run on one kind of server and how to read its stream. */
export type Dialect = {
  healthPath: string
  runPath: string
  /** The request's body; also that of a gateway's session message. */
  body(prompt: string): string
  /** The text directly before each token, which ends at the next quotation mark. */
  beforeText: string
  /** A text that only the last event of a complete stream contains. */
  end: string
}

/** The provider: OpenAI's chat completions. */
export const PROVIDER: Dialect = {
  healthPath: '/v1/models',
  runPath: '/v1/chat/completions',
  body: (content) => JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content }] }),
  beforeText: '"delta":{"content":"',
  end: 'data: [DONE]',
}

/** The product, and the baseline, which accepts any path. */
export const GATEWAY: Dialect = {
  healthPath: '/v1/health',
  runPath: '/v1/agent/run',
  body: (prompt) => JSON.stringify({ prompt }),
  beforeText: 'event: text_delta\ndata: {"text":"',
  end: 'event: done\n',
}

/** The dialects of the product (D31), each with its own way to start a run. */
export const DIALECTS = {
  ui: {
    ...GATEWAY,
    runPath: '/v1/ui/chat',
    body: (text) =>
      JSON.stringify({ id: randomUUID(), messages: [{ id: 'm-1', role: 'user', parts: [{ type: 'text', text }] }] }),
    beforeText: '"delta":"',
    end: 'data: [DONE]',
  },
  'openai-chat': {
    ...GATEWAY,
    runPath: '/v1/openai/v1/chat/completions',
    body: (content) => JSON.stringify({ model: 'main', stream: true, messages: [{ role: 'user', content }] }),
    beforeText: PROVIDER.beforeText,
    end: PROVIDER.end,
  },
  'openai-responses': {
    ...GATEWAY,
    runPath: '/v1/openai/v1/responses',
    body: (input) => JSON.stringify({ model: 'main', stream: true, input }),
    beforeText: '"delta":"',
    end: 'event: response.completed',
  },
  'ag-ui': {
    ...GATEWAY,
    runPath: '/v1/ag-ui',
    body: (content) =>
      JSON.stringify({ threadId: randomUUID(), runId: 'r-1', messages: [{ id: 'm-1', role: 'user', content }] }),
    beforeText: '"delta":"',
    end: '"type":"RUN_FINISHED"',
  },
  a2a: {
    ...GATEWAY,
    runPath: '/v1/a2a',
    body: (text) => {
      const message = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text }] }
      return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } })
    },
    beforeText: '"name":"text","parts":[{"text":"',
    end: '"TASK_STATE_COMPLETED"',
  },
} satisfies Record<string, Dialect>
