import { expect } from 'chai'
import type { Part } from '../part.ts'
import type { World } from '../world.ts'

/** What the containers may do and show. */
export const confined: readonly Part[] = [
  { promise: 'nothing writes outside its volumes', run: writesNothing },
  { promise: 'no process is root', run: hasNoRoot },
  { promise: 'docker inspect and docker logs show no secret', run: showsNoSecret },
]

const containersOf = async (world: World): Promise<string[]> =>
  (await world.compose('ps', '--all', '--format', '{{.Name}}')).split('\n').filter(Boolean)

async function writesNothing(world: World): Promise<void> {
  for (const name of await containersOf(world)) {
    const format = '{{range .Mounts}}{{.Destination}} {{end}}{{range $path, $_ := .HostConfig.Tmpfs}}{{$path}} {{end}}'
    const mounts = (await world.engine.docker(['inspect', '--format', format, name])).trim().split(' ')
    const changed = (await world.engine.docker(['diff', name])).split('\n').filter(Boolean)
    /** The engine makes the folders at which it mounts. */
    const written = changed.filter((line) => !mounts.some((mount) => `${mount}/`.startsWith(`${line.slice(2)}/`)))
    expect(written, name).to.deep.equal([])
  }
}

async function hasNoRoot(world: World): Promise<void> {
  for (const name of await containersOf(world)) {
    const [, main = ''] = (await world.engine.docker(['top', name, '-o', 'uid,pid,args'])).split('\n')
    expect(main.trim(), name).not.to.match(/^0 /)
  }
}

async function showsNoSecret(world: World): Promise<void> {
  const secrets = Object.entries(await world.secrets())
  for (const name of await containersOf(world)) {
    const { stdout, stderr } = await world.engine.tryDocker(['logs', name])
    const shown = { inspect: await world.engine.docker(['inspect', name]), logs: stdout + stderr }
    for (const [what, text] of Object.entries(shown))
      for (const [secret, value] of secrets)
        expect(text.includes(value), `${what} of ${name} shows ${secret}`).to.equal(false)
  }
}
