import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Executes a command of Docker. Returns what it prints. Throws when the command fails. */
export type Execute = (args: string[]) => Promise<string>

/**
 * A program `docker` that hands its arguments to a function of the test. Machines that run the tests have no Docker; the scripts of
 * deploy/ are run with this one.
 */
export class FakeDocker implements AsyncDisposable {
  /** The folder that contains it, for PATH. */
  readonly bin: string
  readonly #server: Server

  private constructor(bin: string, server: Server) {
    this.bin = bin
    this.#server = server
  }

  static async start(execute: Execute): Promise<FakeDocker> {
    const server = createServer((req, res) => {
      req.setEncoding('utf8').once('data', (body: string) => {
        execute(JSON.parse(body) as string[]).then(
          (output) => res.end(output),
          (cause: unknown) => res.writeHead(500).end(String(cause)),
        )
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const bin = await mkdtemp(join(tmpdir(), 'agent-engine-docker-'))
    const program = join(bin, 'docker')
    await writeFile(program, programFor((server.address() as AddressInfo).port))
    await chmod(program, 0o755)
    return new FakeDocker(bin, server)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await rm(this.bin, { recursive: true, force: true })
  }
}

const programFor = (port: number) => `#!${process.execPath}
fetch('http://127.0.0.1:${port}', { method: 'POST', body: JSON.stringify(process.argv.slice(2)) }).then(async (answer) => {
  const stream = answer.ok ? process.stdout : process.stderr
  stream.write(await answer.text())
  process.exitCode = answer.ok ? 0 : 1
})
`
