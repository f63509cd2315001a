import { caller } from '../../api/caller.ts'

/** An example plan: four steps in three waves. The demo model follows its prompts. */
export function firstPlan() {
  const isDemo = caller().peek()?.model === 'demo'
  const prompt = (demo: string, real: string) => (isDemo ? demo : real)
  return {
    title: 'Release notes',
    parallel: true,
    steps: [
      { id: 'collect', prompt: prompt('/say Three changes since the last release.', 'Collect what has changed.') },
      { id: 'check', prompt: prompt('/sleep 1500\n/say All checks are green.', 'Check that everything is tested.') },
      {
        id: 'write',
        prompt: prompt('/sleep 1000\n/say The notes are written.', 'Write the release notes.'),
        depends_on: ['collect', 'check'],
      },
      { id: 'review', prompt: prompt('/say Nothing to add.', 'Review the notes.'), depends_on: ['write'] },
    ],
  }
}
