import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

// What the cluster reaches outside: a model provider in OpenAI's format, and an issuer of tokens. It runs in a container of the image, in the
// network `outside` under this name: node outside.ts. `GET /token` gives out a token.
const PORT = 9100
const URL_INSIDE = `http://outside:${PORT}`
const AUDIENCE = 'agent-engine'

const { publicKey, privateKey } = await generateKeyPair('RS256')
const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }

createServer((req, res) => void answer(req, res)).listen(PORT, '0.0.0.0')

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  req.resume()
  if (req.url === '/.well-known/openid-configuration')
    return json(res, { issuer: URL_INSIDE, jwks_uri: `${URL_INSIDE}/jwks` })
  if (req.url === '/jwks') return json(res, { keys: [jwk] })
  if (req.url === '/token') return json(res, { token: await signToken() })
  if (req.url === '/v1/audio/transcriptions') return json(res, { text: 'spoken' })
  if (req.url === '/v1/chat/completions') return complete(res, JSON.stringify({ summary: 'short' }))
  json(res.writeHead(404), {})
}

const signToken = (): Promise<string> =>
  new SignJWT({ tenant_id: 'acme', scope: 'read run approve flows admin' })
    .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
    .setIssuer(URL_INSIDE)
    .setAudience(AUDIENCE)
    .setSubject('someone')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey)

function json(res: ServerResponse, body: object): void {
  if (!res.headersSent) res.setHeader('content-type', 'application/json')
  res.end(JSON.stringify(body))
}

/** A stream of one piece of text. */
function complete(res: ServerResponse, content: string): void {
  const chunk = (delta: object, more: object) => ({
    ...{ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm-1' },
    ...{ choices: [{ index: 0, delta, finish_reason: null, ...more }] },
  })
  const chunks = [chunk({ role: 'assistant', content }, {}), chunk({}, { finish_reason: 'stop' })]
  const usage = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm-1', choices: [] }
  const last = { ...usage, usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 } }
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const each of [...chunks, last]) res.write(`data: ${JSON.stringify(each)}\n\n`)
  res.end('data: [DONE]\n\n')
}
