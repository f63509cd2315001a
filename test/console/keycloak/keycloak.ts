import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../support/until.ts'

const run = promisify(execFile)

const DISTRIBUTION = 'org.keycloak:keycloak-quarkus-dist:26.4.7:zip'

/** Fetches Keycloak with Maven, which keeps it, and unpacks it in the folder. */
export async function fetchKeycloak(folder: string): Promise<string> {
  await run('mvn', ['-q', 'dependency:copy', `-Dartifact=${DISTRIBUTION}`, `-DoutputDirectory=${folder}`], {
    timeout: 600_000,
  })
  const [, name, version] = DISTRIBUTION.split(':')
  await run('unzip', ['-q', join(folder, `${name}-${version}.zip`), '-d', folder])
  return join(folder, `keycloak-${version}`)
}

/** Starts Keycloak with one realm, on a port of this machine, and returns the address of the realm. */
export async function startKeycloak(home: string, port: number, realm: { realm: string }) {
  await mkdir(join(home, 'data/import'), { recursive: true })
  await writeFile(join(home, 'data/import/realm.json'), JSON.stringify(realm))
  const options = ['start-dev', '--import-realm', '--http-host=127.0.0.1', `--http-port=${port}`]
  // Its own process group: the script starts Java in another process.
  const child = spawn(join(home, 'bin/kc.sh'), options, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4_000)))
  const issuer = `http://127.0.0.1:${port}/realms/${realm.realm}`
  const isReady = async () => {
    if (child.exitCode !== null) throw new Error(`Keycloak has ended:\n${output}`)
    const answer = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => undefined)
    return answer?.ok === true
  }
  const close = async () => {
    if (child.exitCode !== null || child.pid === undefined) return
    process.kill(-child.pid, 'SIGTERM')
    await once(child, 'exit')
  }
  try {
    await until(isReady, { what: 'Keycloak to answer', withinMs: 180_000, everyMs: 500 })
  } catch (cause) {
    await close()
    throw cause
  }
  return { issuer, close }
}
