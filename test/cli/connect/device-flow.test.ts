import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { issuerOfConsole, renewedToken, signIn } from '../../../services/cli/connect/device-flow.ts'
import { CliError } from '../../../services/cli/exit-codes.ts'

type Answer = { status?: number; body: object }

const PENDING = { status: 400, body: { error: 'authorization_pending' } }
const TOKENS = { body: { access_token: 'first', refresh_token: 'r1', expires_in: 60 } }

describe('services/cli/connect/device-flow', () => {
  let server: Server
  let url: string
  let answers: Record<string, Answer[]>
  let forms: URLSearchParams[]
  before(async () => {
    server = createServer((req, res) => void answer(req, res))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  beforeEach(() => {
    forms = []
    const code = { device_code: 'd', user_code: 'ABCD', verification_uri: `${url}/enter`, expires_in: 60, interval: 0 }
    const endpoints = { token_endpoint: `${url}/token`, device_authorization_endpoint: `${url}/device` }
    answers = { '/.well-known/openid-configuration': [{ body: endpoints }], '/device': [{ body: code }] }
  })
  after(() => void server.close())

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    forms.push(new URLSearchParams(await text(req)))
    const { status = 200, body } = answers[req.url ?? '']?.shift() ?? { status: 404, body: {} }
    res.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(body))
  }

  const signInHere = (shown: object[] = []) => signIn({ issuer: url, clientId: 'ae', show: (code) => shown.push(code) })

  it('shows the code, asks until the person has entered it, and keeps what renews the token', async () => {
    answers['/token'] = [PENDING, PENDING, TOKENS]
    const shown: object[] = []
    const signedIn = await signInHere(shown)
    expect(shown).to.deep.equal([{ address: `${url}/enter`, userCode: 'ABCD' }])
    expect(signedIn).to.deep.include({ token: 'first' })
    expect(signedIn?.renewal).to.include({ refresh_token: 'r1', client_id: 'ae', token_endpoint: `${url}/token` })
    expect(forms.at(-1)?.get('device_code')).to.equal('d')
  })

  it('an issuer without the device flow, or that refuses it to the client, signs nobody in', async () => {
    answers['/device'] = [{ status: 400, body: { error: 'unauthorized_client' } }]
    expect(await signInHere()).to.equal(undefined)
    answers['/.well-known/openid-configuration'] = [{ body: { token_endpoint: `${url}/token` } }]
    expect(await signInHere()).to.equal(undefined)
  })

  it('a person who refuses is not signed in: 77', async () => {
    answers['/token'] = [{ status: 400, body: { error: 'access_denied' } }]
    const cause = await signInHere().catch((error: unknown) => error)
    expect(cause).to.be.instanceOf(CliError).and.include({ code: 77 })
  })

  it('a token is renewed when it is about to end or was refused, and otherwise stays', async () => {
    const renewal = {
      refresh_token: 'r1',
      token_endpoint: `${url}/token`,
      client_id: 'ae',
      expires_at: Date.now() + 60_000,
    }
    const profile = { url, token: 'first', renewal }
    expect(await renewedToken(profile, undefined)).to.equal(profile)
    expect(await renewedToken({ url, token: 'first' }, 'first')).to.deep.equal({ url, token: 'first' })
    answers['/token'] = [
      { body: { access_token: 'second', expires_in: 60 } },
      { body: { access_token: 'third', refresh_token: 'r2' } },
    ]
    const second = await renewedToken({ ...profile, renewal: { ...renewal, expires_at: Date.now() } }, undefined)
    expect([second.token, second.renewal?.refresh_token]).to.deep.equal(['second', 'r1'])
    const third = await renewedToken(second, 'second')
    expect([third.token, third.renewal?.refresh_token]).to.deep.equal(['third', 'r2'])
  })

  it('the issuer of the console is found, where people sign in with one', async () => {
    const signInOf = (sign_in: object) => {
      answers['/console/config.json'] = [{ body: { base_path: '/v1', sign_in } }]
      return issuerOfConsole(`${url}/v1`)
    }
    expect(await signInOf({ kind: 'token' })).to.equal(undefined)
    expect(await signInOf({ kind: 'oidc', issuer: 'https://id', client_id: 'c', audience: 'a' })).to.deep.equal({
      issuer: 'https://id',
      clientId: 'c',
      audience: 'a',
    })
    expect(await issuerOfConsole(`${url}/v1`)).to.equal(undefined)
  })
})
