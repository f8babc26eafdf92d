/** A click of the tour that Studio shows beside an agent with a tour in its metadata. */
interface TourStep {
  title: string
  /** What happens, and where to look. */
  text: string
  button: string
  /** In this order. Sends go to the thread of the tour. */
  does: ReadonlyArray<
    | { send: string } | { queue: string } | { approve: true } | { open: string }
    | { notify: { source: string; kind: string; priority: 'low' | 'medium' | 'high' | 'urgent'; summary: string } }
  >
}

export const requests = {
  ask: 'Can 2.1.0 go out? If it can, deploy it.',
  steer: 'Leave the beta channel out: its certificate has expired.',
  followUp: 'Now write one line about it for the team.',
  post: 'Post the release on the status page. Its login sends a code by SMS.',
}

const steps: readonly TourStep[] = [
  {
    title: 'Ask',
    text: 'The agent answers, and two tools run side by side. The tests take 20 seconds.',
    button: 'Ask for a release',
    does: [{ send: requests.ask }, { open: 'queue' }],
  },
  {
    title: 'Steer and queue',
    text: 'One message enters the run at its next step, the other starts a run of its own. You can edit and cancel both in the queue.',
    button: 'Send both',
    does: [{ send: requests.steer }, { queue: requests.followUp }, { open: 'queue' }],
  },
  {
    title: 'A CI failure arrives',
    text: 'The policy decides: a summary enters the run now, the whole text follows when the agent is idle. The inbox has the reason.',
    button: 'Let CI fail',
    does: [
      {
        notify: {
          source: 'github', kind: 'ci-status', priority: 'high',
          summary: 'CI failed on main: 1 of 214 tests failed (export keeps its time zone)',
        },
      },
      { open: 'inbox' },
    ],
  },
  {
    title: 'Approve',
    text: 'The deployment asks, with its exact arguments. Beta is left out: your message arrived. Decline it below, if you like.',
    button: 'Approve the deployment',
    does: [{ approve: true }, { open: 'lanes' }],
  },
  {
    title: 'Wait for a code',
    text: 'The agent waits for a code by SMS. Two messages come: orders of a stranger, and the code. Only six digits cross.',
    button: 'Post on the status page',
    does: [{ send: requests.post }, { open: 'watches' }],
  },
  {
    title: 'Explain',
    text: 'The prompt of a call, part by part, and how much of it the provider could keep from the call before.',
    button: 'Open the prompt',
    does: [{ open: 'prompt' }],
  },
]

/** What Studio reads from the metadata of the agent. */
export const tour = { threadId: 'release-2.1.0', resourceId: 'demo-user', steps }
