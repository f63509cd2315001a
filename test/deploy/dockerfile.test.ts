import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { validate } from 'dockerfile-utils'
import { NODE_FLAGS } from '../../scripts/node-options.ts'
import { readDockerfile } from './dockerfile.ts'
import { ROOT, readDeploy, SETTINGS } from './files.ts'

describe('deploy/Dockerfile', () => {
  const text = readDeploy('Dockerfile')
  const stages = readDockerfile(text)
  const last = stages.at(-1)?.instructions ?? []
  const argsOf = (keyword: string) => last.filter((each) => each.keyword === keyword).map(({ args }) => args)

  it('has no mistake that a linter for Dockerfiles finds', () => {
    expect(validate(text)).to.deep.equal([])
    expect(validate('FROM node:24\nRUNN x\nEXPOSE 99999999\n')).not.to.deep.equal([])
  })

  it('builds in three stages on the official Node image of the version that the project requires', async () => {
    const { engines } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8')) as { engines: { node: string } }
    expect(stages).to.have.length(3)
    for (const { from } of stages)
      expect(from).to.match(new RegExp(`^node:${engines.node.replace('>=', '')}-\\w+-slim`))
  })

  it('copies files and folders that exist and that .dockerignore lets through', () => {
    const allowed = readFileSync(`${ROOT}.dockerignore`, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('!'))
    const copied = stages.flatMap(({ instructions }) =>
      instructions
        .filter(({ keyword, args }) => keyword === 'COPY' && !args.startsWith('--from'))
        .flatMap(({ args }) => args.split(' ').slice(0, -1)),
    )
    for (const source of copied) {
      expect(existsSync(ROOT + source), source).to.equal(true)
      expect(allowed).to.include(`!${source}`)
    }
  })

  it('runs as the user node from before the first start on, with the flags of scripts/start', () => {
    expect(argsOf('USER')).to.deep.equal(['node'])
    expect(JSON.parse(argsOf('ENTRYPOINT')[0] ?? '')).to.deep.equal(['node', ...NODE_FLAGS])
    const roles = JSON.parse(argsOf('CMD')[0] ?? '') as string[]
    expect(existsSync(ROOT + roles[0])).to.equal(true)
  })

  it('sets only variables that the product or Node reads, and checks the health over the ops listener', () => {
    const names = argsOf('ENV').flatMap((args) => [...args.matchAll(/(\w+)=/g)].map(([, name]) => name ?? ''))
    const unknown = names.filter((name) => !SETTINGS.has(name) && !['NODE_ENV', 'NODE_COMPILE_CACHE'].includes(name))
    expect(unknown).to.deep.equal([])
    expect(argsOf('HEALTHCHECK')[0]).to.include('scripts/healthcheck.ts')
    expect(existsSync(`${ROOT}scripts/healthcheck.ts`)).to.equal(true)
  })
})
