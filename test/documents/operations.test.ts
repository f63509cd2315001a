import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, readFile, stat, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { parse } from 'yaml'
import { requireKubectl } from '../../scripts/local-services/kubectl.ts'
import { ROOT, readCompose } from '../deploy/files.ts'
import { renderHelm, renderKustomize } from '../deploy/kubernetes.ts'
import { StandIns } from '../support/stand-ins.ts'
import { commandsOf } from './blocks.ts'
import type { Shell } from './shell.ts'
import { Stage } from './stage.ts'

const run = promisify(execFile)
const operations = await readFile(`${ROOT}deploy/README.md`, 'utf8')
const { scripts } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8')) as { scripts: Record<string, string> }
const COMPOSE_COMMANDS = ['up', 'ps', 'exec', 'stop', 'config']

describe('deploy/README.md', () => {
  let stage: Stage
  let standIns: StandIns
  let shell: Shell
  const npm: string[] = []

  before(async () => {
    stage = await Stage.open()
    // The commands change files of deploy/, so they get a copy of it.
    await cp(`${ROOT}deploy`, join(stage.dir, 'deploy'), { recursive: true })
    for (const name of ['package.json', 'package-lock.json']) await symlink(ROOT + name, join(stage.dir, name))
    standIns = await StandIns.start({ docker, kubectl, helm, npm: callNpm })
    shell = await stage.shell(standIns.bin)
  })
  after(async () => {
    await shell?.close()
    await standIns?.[Symbol.asyncDispose]()
    await stage?.close()
  })

  /** Checks a command of Docker against the files that it names. */
  async function docker(args: string[], cwd: string): Promise<string> {
    if (args[0] === 'build') {
      const file = args[args.indexOf('--file') + 1] ?? ''
      if (!existsSync(join(cwd, file)) || args.at(-1) !== '.') throw new Error(`docker ${args.join(' ')}`)
      return ''
    }
    const file = args.includes('--file') ? args[args.indexOf('--file') + 1] : 'compose.yaml'
    if (args[0] !== 'compose' || !existsSync(join(cwd, file ?? ''))) throw new Error(`docker ${args.join(' ')}`)
    const [command = '', ...rest] = args.slice(args.includes('--file') ? 3 : 1)
    if (!COMPOSE_COMMANDS.includes(command)) throw new Error(`docker compose has no ${command}`)
    if (!existsSync(join(stage.dir, 'deploy/.env'))) throw new Error('there is no deploy/.env')
    const services = Object.keys(readCompose().services)
    if (command === 'config') return services.join('\n')
    const named = rest.filter((each) => !each.startsWith('-'))
    const wanted = command === 'exec' ? named.slice(0, 1) : named
    const unknown = wanted.filter((each) => !services.includes(each))
    if (unknown.length > 0) throw new Error(`compose.yaml has no service ${unknown.join()}`)
    const script = named.find((each) => each.startsWith('scripts/'))
    if (script !== undefined && !existsSync(ROOT + script)) throw new Error(`the image has no ${script}`)
    return ''
  }

  /** Runs what needs no cluster with the real kubectl, and checks the rest against the manifests. */
  async function kubectl(args: string[], cwd: string): Promise<string> {
    const real = await requireKubectl()
    if (args[0] === 'create')
      return (await run(real, [...args, '--dry-run=client', '--output', 'yaml'], { cwd })).stdout
    if (args[0] === 'apply')
      return (await run(real, ['kustomize', resolve(cwd, args[args.indexOf('--kustomize') + 1] ?? '')])).stdout
    if (args.join(' ') === 'label namespace agent-engine pod-security.kubernetes.io/enforce=restricted') return ''
    const manifests = [await renderKustomize('overlays/production'), await renderHelm()].flat()
    const deployments = manifests
      .filter(({ kind }) => kind === 'Deployment')
      .map(({ metadata }) => `deployment/${metadata.name}`)
    if (!args.some((each) => deployments.includes(each)))
      throw new Error(`there is no such deployment: ${args.join(' ')}`)
    if (!args.join(' ').includes('--namespace agent-engine')) throw new Error('the namespace is missing')
    return ''
  }

  /** Renders the chart as `helm upgrade --install` would before it sends it. */
  async function helm(args: string[], cwd: string): Promise<string> {
    const [, , name, chart = '', , namespace, , values = ''] = args
    const command = `upgrade --install ${name} ${chart} --namespace ${namespace} --values ${values}`
    if (args.join(' ') !== command || resolve(cwd, chart) !== join(stage.dir, 'deploy/helm/agent-engine'))
      throw new Error(`helm ${args.join(' ')}`)
    return JSON.stringify(await renderHelm(parse(await readFile(resolve(cwd, values), 'utf8')) as object))
  }

  /** Other tests run the scripts; here they only have to exist. */
  async function callNpm([, name = '']: string[]): Promise<string> {
    if (scripts[name] === undefined) throw new Error(`package.json has no script ${name}`)
    npm.push(name)
    return ''
  }

  for (const { line, text } of commandsOf(operations))
    it(`the commands in line ${line} work`, async () => {
      await shell.run(text)
    })

  it('the commands have made the secrets, which nobody else can read, and given every gateway back to nginx', async () => {
    const secret = (name: string) => readFile(join(stage.dir, 'deploy/secrets', name), 'utf8')
    expect(await secret('master-key')).to.match(/^[A-Za-z0-9+/]{43}=\n$/)
    expect(await secret('redis-url')).to.match(/^redis:\/\/:[0-9a-f]{48}@redis:6379\n$/)
    expect(await secret('mongodb-url')).to.match(/^mongodb:\/\/agent-engine:[0-9a-f]{48}@mongo:27017\//)
    expect((await stat(join(stage.dir, 'deploy/secrets'))).mode & 0o777).to.equal(0o700)
    expect(await readFile(join(stage.dir, 'deploy/nginx/gateways.conf'), 'utf8')).to.equal(
      await readFile(`${ROOT}deploy/nginx/gateways.conf`, 'utf8'),
    )
    expect(npm).to.include.members(['doctor', 'licences', 'sbom', 'audit'])
  })

  it('shows YAML that can be read', () => {
    for (const [, yaml = ''] of operations.matchAll(/^```yaml\n([\s\S]*?)^```$/gm))
      expect(parse(yaml)).to.be.an('object')
  })
})
