import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentEngine } from '../../../shared/client/client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { findAddress } from './open-console.ts'

/** The environment variables for the trial server: those for the network path to providers. Settings of agent-engine are left out. */
const PASSED = ['PATH', 'HOME', 'NODE_COMPILE_CACHE', 'NODE_EXTRA_CA_CERTS', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']

const OWN = {
  HOST: '127.0.0.1',
  PORT: '0',
  OPS_PORT: '0',
  DRAIN_SECS: '0',
  CONSOLE: 'false',
  ALLOW_PRIVATE_URLS: 'true',
}

const failed = () =>
  new CliError(
    EXIT.failed,
    'the server for the trial did not start',
    '`ae serve` says why; --no-try writes the file without it.',
  )

/**
 * A temporary server to try a provider. It has a free port of this machine, a token that only this process knows, and a folder that is
 * removed afterwards.
 */
export async function startTrialServer({ env, root, nodePath, onTerminate, onInterrupt }: Io) {
  const dir = await mkdtemp(join(tmpdir(), 'ae-init-')) // Only the owner may open the folder.
  const token = randomBytes(24).toString('hex')
  const passed = Object.fromEntries(PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
  const child = spawn(nodePath, [`${root}services/standalone/main.ts`], {
    env: { ...passed, ...OWN, DATA_DIR: dir, API_TOKEN: token },
    cwd: dir,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const { promise: listening, resolve, reject } = Promise.withResolvers<string>()
  const exited = new Promise<void>((ended) => child.once('close', () => ended()))
  void exited.then(() => reject(failed()))
  const releases = [onTerminate, onInterrupt].map((on) => on(() => child.kill('SIGKILL')))
  const close = async () => {
    child.kill('SIGKILL')
    await exited
    for (const release of releases) release()
    await rm(dir, { recursive: true, force: true })
  }
  try {
    findAddress(child.stdout, resolve)
    const url = `${await listening}v1`
    return { engine: new AgentEngine({ url, token }), [Symbol.asyncDispose]: close }
  } catch (cause) {
    await close()
    throw cause
  }
}
