import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'

/**
 * The baseline of the figures: the smallest Node gateway that works. It accepts a prompt on any path and sends each chunk of
 * the provider as one event, at the reader's pace. It stores nothing and checks nothing.
 */
const completions = new URL(`${process.env['MODEL_BASE_URL']}/chat/completions`)
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

createServer((req, res) => {
  if (req.method === 'GET') res.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}')
  else readBody(req, (body) => ask(JSON.parse(body).prompt, res))
}).listen(Number(process.env['PORT']), '127.0.0.1')

function readBody(req: IncomingMessage, then: (body: string) => void): void {
  let body = ''
  req.setEncoding('utf8')
  req.on('data', (chunk: string) => (body += chunk))
  req.on('end', () => then(body))
}

function ask(content: unknown, res: ServerResponse): void {
  const body = JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content }] })
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const req = request(completions, { method: 'POST', agent, headers }, (upstream) => relay(upstream, res))
  req.on('error', () => res.destroy())
  res.on('close', () => req.destroy())
  req.end(body)
}

function relay(upstream: IncomingMessage, res: ServerResponse): void {
  let rest = ''
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  upstream.setEncoding('utf8')
  upstream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: {')) pass(line, res)
    if (!res.writableNeedDrain) return
    upstream.pause()
    res.once('drain', () => upstream.resume())
  })
  upstream.on('end', () => res.end('event: done\ndata: {}\n\n'))
}

function pass(line: string, res: ServerResponse): void {
  const text = JSON.parse(line.slice(6)).choices[0]?.delta.content
  if (text) res.write(`event: text_delta\ndata: ${JSON.stringify({ text })}\n\n`)
}
