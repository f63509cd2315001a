import type { IncomingMessage, ServerResponse } from 'node:http'

/** The minimum that an SSE server does with a request: reads the body and sends the headers. Resolves with the prompt. */
export async function openBare(req: IncomingMessage, res: ServerResponse): Promise<string> {
  let body = ''
  req.setEncoding('utf8')
  for await (const chunk of req) body += String(chunk)
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
  res.flushHeaders()
  return (JSON.parse(body) as { prompt: string }).prompt
}
