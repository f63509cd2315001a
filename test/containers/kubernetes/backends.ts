import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Forwarder } from '../../support/forwarder.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { newSigner } from '../../support/issuer/signer.ts'
import { startModelServer } from '../../support/model-server/model-server.ts'

/** What runs outside of the cluster: an issuer of tokens, a model provider and a transcription backend, at an address that containers reach. */
export class Backends implements AsyncDisposable {
  /** Settings of all processes. */
  readonly settings: Record<string, string>
  readonly modelUrl: string
  readonly speechUrl: string
  readonly token: string
  readonly #open: AsyncDisposableStack

  private constructor(
    open: AsyncDisposableStack,
    facts: Pick<Backends, 'settings' | 'modelUrl' | 'speechUrl' | 'token'>,
  ) {
    this.#open = open
    this.settings = facts.settings
    this.modelUrl = facts.modelUrl
    this.speechUrl = facts.speechUrl
    this.token = facts.token
  }

  static async start(host: string): Promise<Backends> {
    const open = new AsyncDisposableStack()
    const issuer = open.adopt(await Issuer.start([await newSigner('RS256', 'r1')]), (each) => each.close())
    const model = open.adopt(await startModelServer({ record: false }), (each) => each.close())
    model.otherwise(() => '{"summary":"short"}')
    const speech = createServer((req, res) => {
      req.resume().once('end', () => res.setHeader('content-type', 'application/json').end('{"text":"heard"}'))
    }).listen(0, '127.0.0.1')
    await once(speech, 'listening')
    open.defer(() => void speech.close())
    const publish = async (port: number) => `http://${host}:${open.use(await Forwarder.start(host, port)).port}`
    const keys = `${await publish(Number(new URL(issuer.url).port))}/jwks`
    return new Backends(open, {
      settings: { AUTH_MODE: 'enforced', OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, OIDC_JWKS_URI: keys },
      modelUrl: `${await publish(Number(new URL(model.url).port))}/v1`,
      speechUrl: `${await publish((speech.address() as AddressInfo).port)}/v1`,
      token: await issuer.token(),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }
}
