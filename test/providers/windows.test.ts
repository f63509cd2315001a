import { expect } from 'chai'
import { createWindows } from '../../shared/providers/windows.ts'

const ROWS: [type: string, model: string, window: number | undefined][] = [
  ['openai', 'gpt-4o', 128_000],
  ['anthropic', 'claude-sonnet-4-20250514', 200_000],
  ['openai-compatible', 'gpt-4o', 128_000],
  ['openai', 'test-model', undefined],
  ['openai', 'constructor', undefined],
  ['demo', 'gpt-4o', undefined],
  ['ollama', 'gpt-4o', undefined],
]

describe("a model's window", () => {
  for (const [type, model, window] of ROWS) {
    it(`D5.6: of ${model} of ${type} is ${window ?? 'not known'}`, () => {
      expect(createWindows()(type, model)).to.equal(window)
    })
  }
})
