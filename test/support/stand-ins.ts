import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Executes a command, given its arguments and its folder. Returns what it prints. Throws when the command fails. */
export type Execute = (args: string[], cwd: string) => Promise<string>

/**
 * Programs that hand their arguments to functions of the test, for those that the machines that run the tests do not have, such as
 * docker.
 */
export class StandIns implements AsyncDisposable {
  /** The folder that contains them, for PATH. */
  readonly bin: string
  readonly #server: Server

  private constructor(bin: string, server: Server) {
    this.bin = bin
    this.#server = server
  }

  static async start(programs: Readonly<Record<string, Execute>>): Promise<StandIns> {
    const server = createServer((req, res) => {
      let body = ''
      req.setEncoding('utf8').on('data', (text: string) => (body += text))
      req.once('end', () => {
        const { name, args, cwd } = JSON.parse(body) as { name: string; args: string[]; cwd: string }
        const run = programs[name] ?? (() => Promise.reject(new Error(`there is no ${name}`)))
        run(args, cwd).then(
          (output) => res.end(output),
          (cause: unknown) => res.writeHead(500).end(`${String(cause)}\n`),
        )
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const bin = await mkdtemp(join(tmpdir(), 'agent-engine-stand-ins-'))
    for (const name of Object.keys(programs)) {
      await writeFile(join(bin, name), programFor(name, (server.address() as AddressInfo).port))
      await chmod(join(bin, name), 0o755)
    }
    return new StandIns(bin, server)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await rm(this.bin, { recursive: true, force: true })
  }
}

const programFor = (name: string, port: number) => `#!${process.execPath}
const call = { name: '${name}', args: process.argv.slice(2), cwd: process.cwd() }
fetch('http://127.0.0.1:${port}', { method: 'POST', body: JSON.stringify(call) }).then(async (answer) => {
  const stream = answer.ok ? process.stdout : process.stderr
  stream.write(await answer.text())
  process.exitCode = answer.ok ? 0 : 1
})
`
