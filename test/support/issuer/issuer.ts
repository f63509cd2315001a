import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import type { Signer } from './signer.ts'

export const AUDIENCE = 'urn:agent-engine:test'

/** Clients of the issuer. The tenant of a token is the client that it was issued to. */
const CLIENTS = ['acme', 'globex', 'initech', 'umbrella']

const JWKS_PATH = '/jwks'

/** A real identity provider (oidc-provider) behind a server that tests can make misbehave. */
export class Issuer {
  readonly url: string
  /** The requested paths, in order. */
  readonly requests: string[] = []
  readonly #port: number
  #server: Server
  #provider: RequestListener
  #behaviour: { path: string; listener: RequestListener } | undefined

  static async start(signers: readonly Signer[]): Promise<Issuer> {
    const server = createServer()
    await listen(server, 0)
    return new Issuer(server, signers)
  }

  private constructor(server: Server, signers: readonly Signer[]) {
    this.#port = (server.address() as AddressInfo).port
    this.url = `http://127.0.0.1:${this.#port}`
    this.#server = server.on('request', this.#handle)
    this.#provider = createProvider(this.url, signers)
  }

  /** How often the key set was requested. */
  get keyFetches(): number {
    return this.requests.filter((path) => path === JWKS_PATH).length
  }

  /** Replaces the provider by one with other keys at the same address, as after a rotation. */
  rotate(signers: readonly Signer[]): void {
    this.#provider = createProvider(this.url, signers)
  }

  /** Answers requests in place of the provider: all of them, or those for one path. */
  misbehave(listener: RequestListener, path = '/'): void {
    this.#behaviour = { path, listener }
  }

  behave(): void {
    this.#behaviour = undefined
  }

  /** Refuses connections until `up`. */
  async down(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async up(): Promise<void> {
    this.#server = createServer(this.#handle)
    await listen(this.#server, this.#port)
  }

  /** An access token by the client-credentials grant, signed with the key for `alg`. */
  async token(client = 'acme', alg = 'RS256'): Promise<string> {
    const grant = {
      grant_type: 'client_credentials',
      resource: `urn:alg:${alg}`,
      client_id: client,
      client_secret: 's',
    }
    const answer = await fetch(`${this.url}/token`, { method: 'POST', body: new URLSearchParams(grant) })
    const { access_token: token } = (await answer.json()) as { access_token?: string }
    if (token === undefined) throw new Error(`the issuer gave no token: ${answer.status}`)
    return token
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.down()
  }

  readonly #handle: RequestListener = (req, res) => {
    const { pathname: path } = new URL(req.url ?? '/', this.url)
    this.requests.push(path)
    const { path: prefix, listener } = this.#behaviour ?? { path: '/', listener: this.#provider }
    const answer = path.startsWith(prefix) ? listener : this.#provider
    answer(req, res)
  }
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
}

function createProvider(url: string, signers: readonly Signer[]): RequestListener {
  const provider = new Provider(url, {
    clients: CLIENTS.map((client) => ({
      client_id: client,
      client_secret: 's',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
      token_endpoint_auth_method: 'client_secret_post',
    })),
    jwks: { keys: signers.map(({ privateJwk }) => privateJwk) },
    cookies: { keys: ['unused'] },
    adapter: () => FORGETFUL,
    ttl: { ClientCredentials: 7_200 },
    extraTokenClaims: (_context: unknown, token: { clientId: string }) => ({ tenant_id: token.clientId }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: resourceOf },
    },
  })
  return provider.callback()
}

/** A store that keeps nothing, because tokens are never looked up. */
const FORGETFUL = { upsert: async () => {}, find: async () => undefined }

/** The requested resource names the algorithm. */
function resourceOf(_context: unknown, resource: string) {
  const alg = resource.split(':').at(-1)
  return { scope: '', audience: AUDIENCE, accessTokenTTL: 7_200, accessTokenFormat: 'jwt', jwt: { sign: { alg } } }
}
