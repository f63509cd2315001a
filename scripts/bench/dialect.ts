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
