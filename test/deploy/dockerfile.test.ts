import { existsSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { validate } from 'dockerfile-utils'
import { NODE_FLAGS } from '../../scripts/node-options.ts'
import { copiesOf, readDockerfile } from './dockerfile.ts'
import { ROOT, readDeploy, SETTINGS } from './files.ts'

const OF_THE_SYSTEM = ['PATH', 'NODE_ENV', 'NODE_COMPILE_CACHE']

describe('deploy/Dockerfile', () => {
  const text = readDeploy('Dockerfile')
  const stages = readDockerfile(text)
  const last = stages.at(-1)?.instructions ?? []
  const argsOf = (keyword: string) => last.filter((each) => each.keyword === keyword).map(({ args }) => args)

  it('has no mistake that a linter for Dockerfiles finds', () => {
    expect(validate(text)).to.deep.equal([])
    expect(validate('FROM node:24\nRUNN x\nEXPOSE 99999999\n')).not.to.deep.equal([])
  })

  it('builds each stage on the official Node image of the version that the project requires, and the image from what they leave', async () => {
    const { engines } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8')) as { engines: { node: string } }
    const official = new RegExp(`^node:${engines.node.replace('>=', '')}-\\w+-slim$`)
    expect(stages.map(({ name }) => name)).to.deep.equal(['packages', 'build', 'system', undefined])
    for (const { from } of stages.slice(0, -1)) expect(from).to.match(official)
    expect(stages.at(-1)?.from).to.equal('scratch')
    expect(argsOf('COPY')[0]).to.equal('--from=system / /')
  })

  it('copies files and folders that exist, each to the same place, and every script that README.md runs in a container', () => {
    for (const { source, target } of stages.flatMap(({ instructions }) => copiesOf(instructions))) {
      expect(existsSync(ROOT + source), source).to.equal(true)
      expect(join('/', target), source).to.be.oneOf([join('/', source), '/'])
    }
    const copied = copiesOf(last).map(({ source }) => source)
    const used = [...readDeploy('README.md').matchAll(/ exec .* node (scripts\/\S+)/g)].map(([, script = '']) => script)
    expect(used).to.include.members(['scripts/doctor/main.ts', 'scripts/rewrap-keys.ts'])
    for (const script of used)
      expect(
        copied.some((place) => script.startsWith(place)),
        script,
      ).to.equal(true)
  })

  it('has its ignore list where every builder reads it: BuildKit beside the Dockerfile, the classic one in the project folder', () => {
    expect(readlinkSync(`${ROOT}.dockerignore`)).to.equal('deploy/Dockerfile.dockerignore')
  })

  it('runs as the user node from before the first start on, with the flags of scripts/start', () => {
    expect(argsOf('USER')).to.deep.equal(['node'])
    expect(JSON.parse(argsOf('ENTRYPOINT')[0] ?? '')).to.deep.equal(['node', ...NODE_FLAGS])
    const fill = argsOf('RUN').find((args) => args.includes('fill-compile-cache'))
    expect(fill, 'V8 keeps what it has compiled for each of its flags').to.include(`node ${NODE_FLAGS.join(' ')} `)
    const roles = JSON.parse(argsOf('CMD')[0] ?? '') as string[]
    expect(existsSync(ROOT + roles[0])).to.equal(true)
  })

  it('sets only variables that the product, Node or a shell reads, and checks the health over the ops listener', () => {
    const names = argsOf('ENV').flatMap((args) => [...args.matchAll(/(\w+)=/g)].map(([, name]) => name ?? ''))
    const unknown = names.filter((name) => !SETTINGS.has(name) && !OF_THE_SYSTEM.includes(name))
    expect(unknown).to.deep.equal([])
    expect(argsOf('HEALTHCHECK')[0]).to.include('scripts/healthcheck.ts')
    expect(existsSync(`${ROOT}scripts/healthcheck.ts`)).to.equal(true)
  })
})
