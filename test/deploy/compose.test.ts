import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { parse } from 'yaml'
import { FIELDS } from '../../shared/platform/config/fields.ts'
import { InvalidValue } from '../../shared/platform/config/values.ts'
import {
  type Compose,
  interpolated,
  LONGEST_STOP_SECS,
  productServices,
  ROOT,
  readCompose,
  readDeploy,
  readEnvExample,
  SETTINGS,
} from './files.ts'

const TOP = ['name', 'services', 'secrets', 'networks', 'volumes']
const SERVICE = [
  ...[
    'image',
    'build',
    'command',
    'user',
    'env_file',
    'environment',
    'volumes',
    'tmpfs',
    'ports',
    'networks',
    'depends_on',
  ],
  ...['healthcheck', 'restart', 'read_only', 'cap_drop', 'cap_add', 'security_opt', 'secrets'],
  ...['stop_signal', 'stop_grace_period'],
]
/** Variables that compose.yaml itself uses. */
const OWN = ['AGENT_ENGINE_IMAGE', 'HTTP_PORT']
const SECRETS = ['MASTER_KEY', 'REDIS_URL', 'MONGODB_URL']

describe('deploy/compose.yaml', () => {
  const compose = readCompose()
  const services = Object.entries(compose.services)
  const product = productServices(compose)

  it('uses only keys of the Compose specification', () => {
    const top = Object.keys(compose).filter((key) => !key.startsWith('x-'))
    expect(top.filter((key) => !TOP.includes(key))).to.deep.equal([])
    for (const [name, service] of services)
      expect(
        Object.keys(service).filter((key) => !SERVICE.includes(key)),
        name,
      ).to.deep.equal([])
  })

  it('runs nginx, 2 gateways, 3 workers, 2 executors, Redis and MongoDB', () => {
    expect(Object.groupBy(product, ({ role }) => role)).to.have.all.keys('gateway', 'worker', 'executor')
    const count = (wanted: string) => product.filter(({ role }) => role === wanted).length
    expect([count('gateway'), count('worker'), count('executor')]).to.deep.equal([2, 3, 2])
    expect(Object.keys(compose.services)).to.include.members(['nginx', 'redis', 'mongo'])
  })

  it('refers to services, networks, volumes and files that exist, and waits for the health of services that have a health check', () => {
    for (const [name, { depends_on = {}, networks = [], volumes = [], command, build }] of services) {
      for (const [other, { condition }] of Object.entries(depends_on)) {
        const known = compose.services[other]
        expect(known, `${name} waits for ${other}`).to.exist
        expect(condition).to.equal('service_healthy')
        if (!product.some((own) => own.name === other)) expect(known?.['healthcheck'], other).to.exist
      }
      expect(Object.keys(compose.networks), name).to.include.members(networks)
      for (const volume of volumes) {
        const [source = ''] = volume.split(':')
        if (source.startsWith('./')) expect(existsSync(`${ROOT}deploy/${source}`), volume).to.equal(true)
        else if (!source.startsWith('/')) expect(Object.keys(compose.volumes)).to.include(source)
      }
      if (command[0]?.startsWith('services/')) expect(existsSync(ROOT + command[0]), command[0]).to.equal(true)
      if (build) expect(existsSync(`${ROOT}deploy/${build.context}/${build.dockerfile}`)).to.equal(true)
    }
  })

  it('sets only settings that exist, to values that they take', () => {
    for (const { name, service } of product)
      for (const [variable, value] of Object.entries(service.environment ?? {}).filter(isNoFile))
        expect(
          SETTINGS.get(variable)?.parse(interpolated([value], {})[0] ?? ''),
          `${name}: ${variable}`,
        ).not.instanceOf(InvalidValue)
    const names = product.flatMap(({ service }) => Object.entries(service.environment ?? {}).filter(isNoFile))
    expect(names.map(([variable]) => variable).filter((variable) => !SETTINGS.has(variable))).to.deep.equal([])
  })

  it('.env.example holds settings and the variables of compose.yaml, and does not repeat what compose.yaml sets', () => {
    const names = Object.keys(readEnvExample())
    expect(names.filter((name) => !SETTINGS.has(name) && !OWN.includes(name))).to.deep.equal([])
    expect(names).to.include.members(OWN)
    const used = [...readDeploy('compose.yaml').matchAll(/(?<!\$)\$\{(\w+)/g)].map(([, name]) => name)
    expect([...new Set(used)].toSorted()).to.deep.equal(OWN.toSorted())
    const set = new Set(product.flatMap(({ service }) => Object.keys(service.environment ?? {})))
    expect(names.filter((name) => set.has(name))).to.deep.equal([])
  })

  it('publishes the API on this machine alone, and further only together with an issuer of tokens', () => {
    const published = services.flatMap(([, { ports = [] }]) => ports)
    expect(published).to.deep.equal(['127.0.0.1:${HTTP_PORT:-8080}:8080'])
    const further = readCompose('compose.public.yaml').services
    const gateways = product.filter(({ role }) => role === 'gateway').map(({ name }) => name)
    expect(Object.keys(further)).to.have.members(['nginx', ...gateways])
    expect(further['nginx']?.['ports']).to.deep.equal(['${PUBLIC_PORT:-80}:8080'])
    for (const name of gateways)
      for (const variable of ['OIDC_ISSUER', 'OIDC_AUDIENCE'])
        expect(further[name]?.environment?.[variable], `${name}: ${variable}`).to.match(/^\$\{OIDC_\w+:\?.+\}$/)
  })

  it('gives the secrets as files that README.md makes, and no environment or argument holds one', () => {
    const files = Object.entries(compose['secrets'] as Record<string, { file: string }>)
    expect(files.map(([name]) => name)).to.deep.equal(['master-key', 'redis-url', 'mongodb-url'])
    for (const [name, { file }] of files) {
      expect(file).to.equal(`./secrets/${name}`)
      expect(readDeploy('README.md')).to.match(new RegExp(`>deploy/secrets/${name}$`, 'm'))
    }
    for (const { name, service } of product) {
      expect(service['secrets'], name).to.deep.equal(files.map(([secret]) => secret))
      for (const secret of SECRETS) {
        const place = `/run/secrets/${secret.toLowerCase().replace('_', '-')}`
        expect(service.environment?.[`${secret}_FILE`], `${name}: ${secret}`).to.equal(place)
        expect(service.environment, name).not.to.have.property(secret)
      }
    }
    for (const [name, { environment }] of services)
      expect(
        Object.keys(environment ?? {}).filter((each) => each.includes('PASSWORD')),
        name,
      ).to.deep.equal([])
  })

  it('compose.programs.yaml gives every process the same secrets in the environment, and no file', () => {
    const text = readDeploy('compose.programs.yaml')
    const others = (parse(text, { merge: true, logLevel: 'silent' }) as Compose).services
    expect(Object.keys(others)).to.have.members(product.map(({ name }) => name))
    for (const [name, { environment = {} }] of Object.entries(others)) {
      // In the service itself: Compose overlooks it in what a service takes from an anchor.
      expect(text).to.match(new RegExp(`^  ${name}: \\{.*secrets: !reset \\[\\]\\}$`, 'm'))
      for (const secret of SECRETS) {
        expect(environment[`${secret}_FILE`], name).to.equal('')
        expect(environment[secret], name).to.match(new RegExp(`^\\$\\{${secret}:\\?.+\\}$`))
      }
    }
  })

  it('gives each process the time to drain before it is killed', () => {
    expect(readEnvExample()['DRAIN_SECS']).to.equal(FIELDS.drainMs.fallback)
    for (const { name, service } of product)
      expect(Number.parseInt(service.stop_grace_period ?? '', 10), name).to.be.at.least(LONGEST_STOP_SECS)
  })

  it('runs the product without rights: a read-only root file system, no capability and no new privilege', () => {
    for (const { name, service } of product) {
      expect(service, name).to.deep.include({ read_only: true, cap_drop: ['ALL'], tmpfs: ['/tmp'] })
      expect(service['security_opt'], name).to.deep.equal(['no-new-privileges:true'])
    }
  })

  it('keeps Redis and MongoDB in a network that leads nowhere, and publishes nginx only', () => {
    expect(compose.networks['inside']).to.deep.equal({ internal: true })
    for (const name of ['redis', 'mongo']) expect(compose.services[name]?.networks).to.deep.equal(['inside'])
    expect(services.filter(([, service]) => service['ports']).map(([name]) => name)).to.deep.equal(['nginx'])
  })

  it('runs Redis with noeviction and an append-only file, and MongoDB as a replica set', () => {
    const redis = compose.services['redis']?.command.join(' ')
    expect(redis).to.include('--maxmemory-policy noeviction').and.include('--appendonly yes')
    expect(compose.services['mongo']?.command.join(' ')).to.include('--replSet agent-engine')
  })

  it('names the same gateways to nginx, to compose and to deploy/roll', () => {
    const known = product.filter(({ role }) => role === 'gateway').map(({ name }) => name)
    const lines = [...readDeploy('nginx/gateways.conf').matchAll(/^ *server (\S+):8080 [^;]*; # (\S+)$/gm)]
    expect(lines.map(([, host]) => host)).to.deep.equal(known)
    expect(lines.map(([, , name]) => name)).to.deep.equal(known)
  })
})

const isNoFile = ([, value]: [string, string]): boolean => !value.startsWith('/run/secrets/')
