import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { Load } from '../../deploy/load.ts'
import { until } from '../../support/until.ts'
import type { Part } from '../part.ts'
import type { World } from '../world.ts'

export const roll: readonly Part[] = [
  {
    promise: 'deploy/roll under load: no request is refused, no stream ends early, and no session is lost',
    run: rollUnderLoad,
  },
]

async function rollUnderLoad(world: World): Promise<void> {
  const load = new Load(world.url)
  await load.start({ clients: 1, flow: 'kept' })
  const isBusy = () => Math.min(...Object.values(load.counts)) > 0 || load.failures.length > 0
  await until(isBusy, { what: 'every client to be answered', lastSeen: () => load.counts })
  const gateways = () => readFile(join(world.folder, 'deploy/nginx/gateways.conf'), 'utf8')
  const [before, output] = [await gateways(), await world.shell('deploy/roll')]
  await load.stop()
  if (load.failures.length > 0) throw new Error(load.failures.join('\n'))
  expect(output.match(/^Replacing \S+/gm)).to.have.length(7)
  expect(await gateways()).to.equal(before)
}
