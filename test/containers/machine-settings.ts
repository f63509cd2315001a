import { existsSync } from 'node:fs'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runCommand } from './command.ts'

/** Variables that say how programs reach package registries from this machine. */
const VARIABLES = /^(NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|(https?|no|all)_proxy)$/i
/** The variables among them that name a file. */
const FILES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE']

/**
 * Copies how this machine reaches its package registries into the root folder of a base image: the settings of apt and npm, and the
 * certificates. Returns the variables that the image needs. They may be secrets: such an image must stay on this machine.
 */
export async function copyMachineSettings(root: string): Promise<Record<string, string>> {
  const variables = Object.fromEntries(
    Object.entries(process.env).filter(([name, value]) => VARIABLES.test(name) && value !== undefined),
  ) as Record<string, string>
  const apt = (await runCommand('apt-config', ['dump'])).split('\n').filter((line) => line.startsWith('Acquire::'))
  await writeFile(join(root, 'etc/apt/apt.conf.d/90machine'), `${apt.join('\n')}\n`)
  const [user = '', global = '', cafile = ''] = await Promise.all(['userconfig', 'globalconfig', 'cafile'].map(readNpm))
  await copyTo(user, join(root, 'root/.npmrc'))
  await copyTo(global, join(root, 'usr/local/etc/npmrc'))
  for (const file of new Set([cafile, ...FILES.map((name) => variables[name] ?? '')]))
    await copyTo(file, join(root, file))
  return variables
}

/** A setting of npm. npm sets some of its own for the programs that it runs, which would hide the machine's. */
async function readNpm(name: string): Promise<string> {
  const own = Object.entries(process.env).filter(([variable]) => !/^npm_/i.test(variable))
  const value = (await runCommand('npm', ['config', 'get', name], { cwd: '/', env: Object.fromEntries(own) })).trim()
  return value === 'null' ? '' : value
}

async function copyTo(file: string, target: string): Promise<void> {
  if (file === '' || !existsSync(file)) return
  await mkdir(dirname(target), { recursive: true })
  await cp(file, target, { dereference: true })
}
