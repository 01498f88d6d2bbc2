/** Twenty questions, each with the text that answers it and three that do not. */
export const rankingQueries: readonly { query: string; right: string; wrong: readonly string[] }[] = [
  {
    query: 'What is the capital of Australia?',
    right: 'Canberra was chosen as the capital of Australia in 1908.',
    wrong: [
      'Sydney has a famous opera house.',
      'Kangaroos carry their young in a pouch.',
      'The euro is used in many countries.',
    ],
  },
  {
    query: 'How do I reset my password?',
    right: 'Open the sign-in page and choose "Forgot password" to get a link that lets you set a new one.',
    wrong: [
      'Your invoice is sent on the first of the month.',
      'We ship to most countries in Europe.',
      'The office is closed at weekends.',
    ],
  },
  {
    query: 'symptoms of dehydration',
    right: 'Thirst, a dry mouth, dark urine and dizziness are signs that the body lacks water.',
    wrong: [
      'A balanced diet has fruit and vegetables.',
      'The desert gets little rain.',
      'Marathon runners train for months.',
    ],
  },
  {
    query: 'Who wrote Hamlet?',
    right: 'William Shakespeare wrote the tragedy Hamlet around 1600.',
    wrong: [
      'Charles Dickens grew up in poverty.',
      'Denmark is a kingdom in northern Europe.',
      'The theatre opens at seven.',
    ],
  },
  {
    query: 'why is the sky blue',
    right: 'Air scatters short wavelengths of sunlight more than long ones, so the daytime sky looks blue.',
    wrong: ['Blue paint was expensive in the Middle Ages.', 'Clouds are made of water droplets.', 'The sea is salty.'],
  },
  {
    query: 'best way to cook rice',
    right: 'Rinse the rice, add one and a half times the water, simmer covered for twelve minutes and let it rest.',
    wrong: ['Rice is grown in flooded fields.', 'Wheat is ground into flour.', 'The restaurant takes reservations.'],
  },
  {
    query: 'How far is the Moon from Earth?',
    right: 'The average distance between the Earth and the Moon is about 384,400 kilometres.',
    wrong: ['Mars has two small moons.', 'Neil Armstrong walked on the Moon in 1969.', 'Tides follow the Moon.'],
  },
  {
    query: 'cancel my subscription',
    right: 'To end your plan, go to Billing and press "Stop subscription"; it stays active until the period is over.',
    wrong: ['Add a team member under Settings.', 'Our newsletter appears weekly.', 'You can pay by card or transfer.'],
  },
  {
    query: 'What does a heart valve do?',
    right: 'The valves of the heart open and close so that blood flows in one direction only.',
    wrong: [
      'A bicycle valve holds the air in the tyre.',
      'The lungs take up oxygen.',
      'Valentine cards often show hearts.',
    ],
  },
  {
    query: 'python list to string',
    right: 'Use "".join(items) to turn a list of strings into one string in Python.',
    wrong: [
      'Pythons are large snakes that squeeze their prey.',
      'A violin has four strings.',
      'Shopping lists save time.',
    ],
  },
  {
    query: 'When did the Second World War end?',
    right: 'The Second World War ended in 1945, in May in Europe and in September in the Pacific.',
    wrong: [
      'The First World War began in 1914.',
      'The United Nations sits in New York.',
      'Peace treaties are signed by states.',
    ],
  },
  {
    query: 'How can I make my laptop battery last longer?',
    right: 'Dim the screen, close programs you do not use and keep the charge between 20 and 80 percent.',
    wrong: ['This laptop has a 15 inch display.', 'Car batteries contain lead.', 'Chargers are sold separately.'],
  },
  {
    query: 'treatment for a bee sting',
    right: 'Remove the sting, wash the skin and cool it with ice; an antihistamine helps against swelling.',
    wrong: ['Bees make honey from nectar.', 'Wasps build paper nests.', 'Ice hockey is played in winter.'],
  },
  {
    query: 'What language is spoken in Brazil?',
    right: 'Most people in Brazil speak Portuguese.',
    wrong: [
      'Brazil has won five football World Cups.',
      'Spanish is spoken in Argentina.',
      'The Amazon is a long river.',
    ],
  },
  {
    query: 'late delivery refund',
    right: 'If your parcel arrives after the promised date, we give back the shipping costs.',
    wrong: ['Parcels are packed in recycled paper.', 'Choose a colour before ordering.', 'The shop is at the station.'],
  },
  {
    query: 'How do vaccines work?',
    right: 'A vaccine shows the immune system a harmless piece of a germ, so that it learns to fight the real one.',
    wrong: [
      'Hospitals need many nurses.',
      'Antibiotics are taken as tablets.',
      'Germs were first seen with microscopes.',
    ],
  },
  {
    query: 'tallest mountain in the world',
    right: 'Mount Everest, 8,849 metres high, is the highest peak on Earth.',
    wrong: [
      'The Mariana Trench is the deepest place in the sea.',
      'Skiing is popular in the Alps.',
      'Giraffes are tall.',
    ],
  },
  {
    query: 'How to stop a leaking tap',
    right: 'Turn off the water, unscrew the handle and replace the worn washer that lets it drip.',
    wrong: [
      'Tap dancing began in America.',
      'Drinking water is tested daily.',
      'The leak of documents made headlines.',
    ],
  },
  {
    query: 'What is inflation?',
    right: 'Inflation is the rise of prices over time, so that money buys less than before.',
    wrong: ['Balloons are filled with helium.', 'Banks open at nine.', 'The mint strikes coins.'],
  },
  {
    query: 'train from Paris to London',
    right: 'Eurostar trains run from the Gare du Nord in Paris to St Pancras in London in a little over two hours.',
    wrong: ['Athletes train twice a day.', 'Paris has many museums.', 'London buses are red.'],
  },
]
