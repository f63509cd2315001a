export type Instruction = { keyword: string; args: string }
/** A stage of a Dockerfile: its base image and what follows. */
export type Stage = { from: string; instructions: Instruction[] }

/** Reads a Dockerfile's stages. Lines that end with a backslash go on in the next one. */
export function readDockerfile(text: string): Stage[] {
  const stages: Stage[] = []
  const lines = text.replaceAll(/\\\n\s*/g, '').split('\n')
  for (const line of lines) {
    const [, keyword, args = ''] = /^([A-Z]+) +(.*)$/.exec(line) ?? []
    if (keyword === 'FROM') stages.push({ from: args.split(' ')[0] ?? '', instructions: [] })
    else if (keyword !== undefined) stages.at(-1)?.instructions.push({ keyword, args })
  }
  return stages
}
