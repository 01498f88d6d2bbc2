import { render } from 'preact'
import { App } from './app.tsx'
import { openSession } from './session.tsx'

void openSession()
const root = document.getElementById('app')
if (root) render(<App />, root)
