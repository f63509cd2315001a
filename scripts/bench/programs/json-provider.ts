import { createServer, type ServerResponse } from 'node:http'

/**
 * A provider of chat completions whose every answer is the same JSON text in one chunk. The first part of the path is how long
 * each answer takes: `/after-200/v1/chat/completions` takes 200 ms. Listens on PORT.
 */
createServer((req, res) => {
  if (req.method === 'GET') res.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[]}')
  else req.resume().once('end', () => answerAfter(Number(/^\/after-(\d+)\//.exec(req.url ?? '')?.[1] ?? 0), res))
}).listen(Number(process.env['PORT']), '127.0.0.1')

function answerAfter(ms: number, res: ServerResponse): void {
  if (ms === 0) answer(res)
  else setTimeout(answer, ms, res)
}

const USAGE = { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105 }

const chunk = (delta: object, finish: string | null, usage: object | null): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 0, model: 'bench', choices: [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`

const ANSWER = `${chunk({ role: 'assistant', content: '{"answer":"yes"}' }, null, null)}${chunk({}, 'stop', USAGE)}data: [DONE]\n\n`

function answer(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' }).end(ANSWER)
}
