import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import type { Signer } from './signer.ts'

export const CONSOLE_AUDIENCE = 'urn:agent-engine:console-test'

/** `tenantOf`: the tenant of a name; `acme` for all without it. */
type Client = { id: string; origin: string; tokenSecs: number; tenantOf?: (name: string) => string }

export type SignInIssuer = {
  url: string
  /** The grant types of the token requests, in order. */
  grants: readonly string[]
  /** How its token endpoint fails from now on: it is away, or it refuses every grant. `undefined`: it does not. */
  failure: 'away' | 'refuses' | undefined
  /** Makes the console of an origin known; until then the issuer has no client. */
  register(client: Client): void
  close(): Promise<void>
}

/** A real identity provider (oidc-provider) at which a person signs in by a form with a name and nothing else. */
export async function startSignInIssuer(signer: Signer): Promise<SignInIssuer> {
  let provider: Provider | undefined
  const grants: string[] = []
  const server = createServer((req, res) => {
    if (!provider) return void res.writeHead(503).end()
    if (issuer.failure && req.method === 'POST' && req.url === '/token') return fail(issuer.failure, req, res)
    if (req.url?.startsWith('/interaction/')) return void signIn(provider, req, res)
    provider.callback()(req, res)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer: SignInIssuer = {
    url,
    grants,
    failure: undefined,
    register(client) {
      provider = createProvider(url, { ...client, signer })
      provider.on('grant.success', ({ oidc }) => void grants.push(String(oidc.params['grant_type'])))
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
  return issuer
}

function fail(failure: 'away' | 'refuses', req: IncomingMessage, res: ServerResponse): void {
  if (failure === 'away') return void req.socket.destroy()
  const headers = { 'content-type': 'application/json', 'access-control-allow-origin': '*' }
  res.writeHead(400, headers).end('{"error":"invalid_grant"}')
}

type Settings = Client & { signer: Signer }

function createProvider(url: string, { id, origin, tokenSecs, tenantOf = () => 'acme', signer }: Settings): Provider {
  const server = { scope: '', audience: CONSOLE_AUDIENCE, accessTokenFormat: 'jwt', accessTokenTTL: tokenSecs }
  return new Provider(url, {
    clients: [
      {
        client_id: id,
        application_type: 'web', // A native client would have to ask for consent each time.
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: [`${origin}/console/signed-in`],
        post_logout_redirect_uris: [`${origin}/console/`],
      },
    ],
    jwks: { keys: [signer.privateJwk] },
    cookies: { keys: ['test'] },
    clientBasedCORS: (_context: unknown, from: string) => from === origin,
    findAccount: (_context: unknown, name: string) => ({ accountId: name, claims: () => ({ sub: name }) }),
    extraTokenClaims: (_context: unknown, { accountId }: { accountId: string }) => ({ tenant_id: tenantOf(accountId) }),
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    issueRefreshToken: () => true,
    loadExistingGrant: async ({ oidc }: GrantContext) => {
      const { accountId } = oidc.session
      const grant = new oidc.provider.Grant({ accountId, clientId: id })
      grant.addOIDCScope('openid')
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (context: { body: string }, form: string) => {
          context.body = `${form}<button form="op.logoutForm" name="logout" value="yes">Leave</button>`
        },
      },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ ...server, jwt: { sign: { alg: signer.alg } } }),
        useGrantedResource: () => true,
      },
    },
  })
}

type Grant = { addOIDCScope(scope: string): void; save(): Promise<string> }
type GrantContext = {
  oidc: {
    session: { accountId: string }
    provider: { Grant: new (grant: { accountId: string; clientId: string }) => Grant }
  }
}

/** The issuer's form, and its answer: whoever gives a name is signed in by that name. */
async function signIn(provider: Provider, req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method === 'GET') {
    res
      .setHeader('Content-Type', 'text/html')
      .end('<form method="post"><input name="name"><button>Enter</button></form>')
    return
  }
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const accountId = new URLSearchParams(Buffer.concat(chunks).toString()).get('name') ?? ''
  await provider.interactionFinished(req, res, { login: { accountId } })
}
