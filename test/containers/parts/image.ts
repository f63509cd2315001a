import { expect } from 'chai'
import type { Part } from '../part.ts'
import type { World } from '../world.ts'

const MB = 1_000_000
const BASE = 'node:24-bookworm-slim'
const MOST_ABOVE_BASE = 200 * MB

/** What the image is, before anything runs. */
export const image: readonly Part[] = [
  { promise: 'the image is at most 200 MB above its base', run: isSmall },
  {
    promise: 'it has Node and tini, and neither npm nor a build tool',
    run: hasNoTools,
  },
]

const sizeOf = async ({ engine }: World, name: string): Promise<number> =>
  Number(await engine.docker(['image', 'inspect', '--format', '{{.Size}}', name]))

async function isSmall(world: World): Promise<void> {
  const [size, base] = [await sizeOf(world, 'agent-engine'), await sizeOf(world, BASE)]
  const packages = await inImage(world, 'find node_modules -name package.json -path "*node_modules/*" | wc -l')
  process.stdout.write(
    `       ${Math.round(size / MB)} MB, the base ${Math.round(base / MB)} MB; ${packages.trim()} package.json files\n`,
  )
  expect(size - base).to.be.at.most(MOST_ABOVE_BASE)
}

async function hasNoTools(world: World): Promise<void> {
  const found = await inImage(
    world,
    'for name in node tini npm npx corepack gcc make python3 git; do command -v $name; done; true',
  )
  expect(found.trim().split('\n')).to.deep.equal(['/usr/local/bin/node', '/usr/bin/tini'])
}

const inImage = ({ engine }: World, script: string): Promise<string> =>
  engine.docker(['run', '--rm', '--entrypoint', 'sh', 'agent-engine', '-c', script])
