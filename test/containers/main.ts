import { Engine } from './engine.ts'
import { buildProduct, provideImages } from './images.ts'

const say = (line: string) => void process.stdout.write(`${line}\n`)
await using engine = await Engine.start(say)
await provideImages(engine, say)
say(await buildProduct(engine, 'agent-engine'))
