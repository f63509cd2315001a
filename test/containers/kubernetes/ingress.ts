import { setTimeout as sleep } from 'node:timers/promises'
import { readCompose } from '../../deploy/files.ts'
import type { Manifest } from '../../deploy/kubernetes.ts'
import { until } from '../../support/until.ts'
import type { Engine } from '../engine.ts'
import { addressOf } from './pod.ts'

const PREFIX = 'nginx.ingress.kubernetes.io/'
/** How long a controller takes to learn of a changed endpoint. */
const LEARNS_AFTER_MS = 2_000

/** nginx with what the annotations of an Ingress ask of its controller, and with the controller's own defaults for connections to pods. */
export class IngressController implements AsyncDisposable {
  readonly url: string
  readonly #engine: Engine
  readonly #name: string
  readonly #ingress: Manifest
  #written = ''
  #writing = Promise.resolve()
  #isClosing = false

  private constructor(engine: Engine, ingress: Manifest, place: { name: string; url: string }) {
    this.#engine = engine
    this.#ingress = ingress
    this.#name = place.name
    this.url = place.url
  }

  static async start(engine: Engine, network: string, ingress: Manifest): Promise<IngressController> {
    const name = `${network}-ingress`
    const wait = 'until [ -s /tmp/nginx.conf ]; do sleep 0.1; done; exec nginx -c /tmp/nginx.conf -g "daemon off;"'
    const confined = ['--user', '101:101', '--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL']
    const image = readCompose().services['nginx']?.image ?? ''
    await engine.docker(['run', '--detach', '--name', name, '--network', network, ...confined, image, 'sh', '-c', wait])
    return new IngressController(engine, ingress, { name, url: `http://${await addressOf(engine, name)}:8080` })
  }

  /** Sends requests to the pods with these addresses, as soon as it learns of it. */
  changeEndpoints(addresses: () => readonly string[]): void {
    this.#writing = this.#writing.then(() => sleep(LEARNS_AFTER_MS)).then(() => this.#write(addresses()))
  }

  async whenReady(): Promise<void> {
    const answers = () =>
      fetch(this.url).then(
        (answer) => answer.body?.cancel().then(() => true) ?? true,
        () => false,
      )
    await until(answers, { what: 'nginx to answer', everyMs: 100 })
  }

  async #write(addresses: readonly string[]): Promise<void> {
    const config = nginxConfig(this.#ingress, addresses)
    if (config === this.#written || addresses.length === 0 || this.#isClosing) return
    const isFirst = this.#written === ''
    this.#written = config
    const write = 'cat >/tmp/next.conf && mv /tmp/next.conf /tmp/nginx.conf'
    await this.#engine.docker(['exec', '--interactive', this.#name, 'sh', '-c', write], { input: config })
    if (!isFirst) await this.#engine.docker(['exec', this.#name, 'nginx', '-c', '/tmp/nginx.conf', '-s', 'reload'])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true
    await this.#writing
    await this.#engine.tryDocker(['rm', '--force', this.#name])
  }
}

/** The annotations are named like nginx's directives, but for two. Times are in seconds. */
function nginxConfig({ metadata, spec }: Manifest, addresses: readonly string[]): string {
  const directives = Object.entries(metadata.annotations ?? {}).map(([key, value]) => {
    const name = key.slice(PREFIX.length).replaceAll('-', '_')
    if (name === 'proxy_body_size') return `client_max_body_size ${value};`
    return `${name} ${value}${name.endsWith('timeout') ? 's' : ''};`
  })
  const [rule] = spec.rules
  const locations = rule.http.paths.map(
    ({ path }: { path: string }) => `location ${path} { proxy_pass http://pods; ${directives.join(' ')} }`,
  )
  return `worker_processes 2; pid /tmp/nginx.pid; error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path /tmp/${name};`).join(' ')}
  upstream pods {
    ${addresses.map((address) => `server ${address} max_fails=0;`).join(' ')}
    keepalive 320; keepalive_timeout 60s; keepalive_requests 10000;
  }
  server {
    listen 8080;
    proxy_set_header Connection "";
    proxy_set_header Host ${rule.host};
    proxy_set_header X-Forwarded-For $remote_addr;
    ${locations.join('\n    ')}
  }
}
`
}
