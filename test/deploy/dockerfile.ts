export type Instruction = { keyword: string; args: string }
/** A stage of a Dockerfile: its base image, its name and what follows. The last one has no name. */
export type Stage = { from: string; name: string | undefined; instructions: Instruction[] }

/** Reads a Dockerfile's stages. Lines that end with a backslash go on in the next one. */
export function readDockerfile(text: string): Stage[] {
  const stages: Stage[] = []
  const lines = text.replaceAll(/\\\n\s*/g, '').split('\n')
  for (const line of lines) {
    const [, keyword, args = ''] = /^([A-Z]+) +(.*)$/.exec(line) ?? []
    const [from = '', name] = args.split(' AS ')
    if (keyword === 'FROM') stages.push({ from, name, instructions: [] })
    else if (keyword !== undefined) stages.at(-1)?.instructions.push({ keyword, args })
  }
  return stages
}

/** The files and folders of the project that instructions copy, each with its place in the stage. */
export const copiesOf = (instructions: readonly Instruction[]): { source: string; target: string }[] =>
  instructions.flatMap(({ keyword, args }) => {
    if (keyword !== 'COPY' || args.startsWith('--from')) return []
    const places = args.split(' ')
    const target = places.pop() ?? ''
    return places.map((source) => ({
      source,
      target: target.endsWith('/') ? target + source.split('/').at(-1) : target,
    }))
  })
