/** How one kind of server is asked for a run, and how its stream is read. */
export type Dialect = {
  healthPath: string
  runPath: string
  /** The request's body; of a gateway's session messages too. */
  body(prompt: string): string
  /** What stands right before each token's text, which ends at the next quotation mark. */
  beforeText: string
  /** What only the last event of a good stream holds. */
  end: string
}

/** The provider itself: OpenAI's chat completions. */
export const PROVIDER: Dialect = {
  healthPath: '/v1/models',
  runPath: '/v1/chat/completions',
  body: (content) => JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content }] }),
  beforeText: '"delta":{"content":"',
  end: 'data: [DONE]',
}

/** Ours, and the baseline, which takes any path. */
export const GATEWAY: Dialect = {
  healthPath: '/v1/health',
  runPath: '/v1/agent/run',
  body: (prompt) => JSON.stringify({ prompt }),
  beforeText: 'event: text_delta\ndata: {"text":"',
  end: 'event: done\n',
}
