package seed

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// minDescription is the shortest description, in bytes.
const minDescription = 400

// commonFeatures are on many listings, so that searches for two of them find
// several.
var commonFeatures = []string{"wireless_internet", "kitchen", "hot_water", "free_parking"}

var rareFeatures = []string{
	"airconditioning", "allows_pets", "balcony", "bbq", "beachfront", "breakfast", "coffee_maker", "crib",
	"dishwasher", "elevator", "ev_charger", "fireplace", "garden_or_backyard", "gym", "heating", "iron",
	"jacuzzi", "patio", "pool", "private_entrance", "washer", "waterfront",
}

// featurePhrases say a feature in a sentence.
var featurePhrases = map[string]string{
	"wireless_internet": "fast wireless internet", "kitchen": "a full kitchen",
	"hot_water": "hot water", "free_parking": "a parking space in the shade",
	"airconditioning": "air conditioning", "allows_pets": "room for your dog", "balcony": "a balcony with a hammock",
	"bbq": "a barbecue", "beachfront": "the beach right at the door", "breakfast": "breakfast until ten",
	"coffee_maker": "a good coffee maker", "crib": "a crib on request",
	"dishwasher": "a dishwasher", "elevator": "a lift", "ev_charger": "a charger for electric cars",
	"fireplace": "a fireplace and dry wood", "garden_or_backyard": "a garden with lemon trees",
	"gym": "a small gym", "heating": "heating for the cool months", "iron": "an iron",
	"jacuzzi": "a jacuzzi", "patio": "a tiled patio", "pool": "a pool", "private_entrance": "an entrance of its own",
	"washer": "a washing machine", "waterfront": "steps down to the water",
}

var typeWords = map[string][]string{
	"apartment": {"apartment", "flat", "loft"}, "room": {"room", "guest room"}, "house": {"house", "cottage"},
	"villa": {"villa"}, "hostel": {"hostel", "bunk house"}, "hotel": {"hotel", "guesthouse"}, "resort": {"resort"},
}

var surroundings = map[string][]string{
	"San Salvador": {
		"Cafés, a market and the park are a few minutes on foot.", "From the roof you see the volcano in the morning.",
		"The bus to the coast stops around the corner.", "In the evening the street sells pupusas."},
	"Santa Tecla": {
		"The pedestrian street with its terraces is two blocks away.", "Mornings are cool enough for a sweater.",
		"The road up to the crater begins here.", "On Sundays the market fills the square."},
	"Santa Ana": {
		"The theatre and the white cathedral are close.", "Buses to the lake and the volcano leave nearby.",
		"The streets are quiet after nine.", "A bakery opposite opens at five."},
	"Lisbon": {
		"The tram climbs past the corner.", "Tiles, stairs and the river at the end of the street.",
		"The market hall is ten minutes away.", "There is fado next door on Thursdays, until eleven."},
	"Porto": {
		"The bridge and the cellars are a walk downhill.", "The walk back up keeps you fit.",
		"Fishermen, bookshops and rain that makes the granite shine.", "The metro to the beach stops near."},
	"Funchal": {
		"The levada begins above the house.", "The cable car passes over the garden.",
		"The harbour is a quarter of an hour downhill.", "Bananas grow to the window sill."},
	"El Tunco": {
		"The surf break is three minutes with a board under your arm.", "At low tide you can walk round the rock.",
		"Music on Saturdays, silence on Mondays.", "Sunsets here have an audience."},
	"El Zonte": {
		"The point breaks right in front.", "Everybody in the village takes Lightning, the fruit stand too.",
		"Turtles come ashore from July on.", "The road ends here, and so does the hurry."},
	"Suchitoto": {
		"Cobbles, white walls and the lake below.", "The indigo workshop lets you dye a shirt.",
		"Birds start before the bells.", "A boat takes you across for lunch."},
	"Juayúa": {
		"The food fair fills the streets every weekend.", "The seven waterfalls are a morning's walk.",
		"Coffee dries in the yards around.", "Nights are cool, with fog in the trees."},
	"Ericeira": {
		"Six breaks within a bicycle ride.", "The fishing harbour is below the wall.",
		"White houses with blue edges, and wind.", "The bakery knows when the surf is good."},
}

var habits = []string{
	"We live next door and leave you in peace.", "Check-in is by code, at any hour you like.",
	"Please take your shoes off inside.", "Bring the children, there is nothing they can break.",
	"We lend you two bicycles.", "Quiet hours are from ten at night to seven.",
	"Towels, soap and a first dinner are there when you come.", "Parties belong elsewhere.",
	"Tell us when your bus arrives and we come to meet it.", "We sort our waste, and ask you to do the same.",
	"Long stays are welcome, ask for a price.", "There is a desk and a chair made for working.",
}

func title(d *rand.Rand, l Listing) string {
	word := pick(d, typeWords[l.Type])
	adjective := pick(d, []string{"Quiet", "Sunny", "Airy", "Small", "Old", "Blue", "Bright", "Hidden", "Simple", "Wide"})
	switch d.IntN(4) {
	case 0:
		return fmt.Sprintf("%s %s in %s", adjective, word, l.Place)
	case 1:
		return fmt.Sprintf("%s with %s, %s", capital(word), featurePhrases[pick(d, l.Features)], l.Place)
	case 2:
		return fmt.Sprintf("%s %s for %d near the centre of %s", adjective, word, l.Guests, l.Place)
	default:
		name := pick(d, []string{"Casa", "Quinta", "Vila", "Posada"}) + " " +
			pick(d, []string{"Azul", "Alta", "Serena", "do Mar", "del Sol", "Verde"})
		return fmt.Sprintf("%s – %s %s in %s", name, strings.ToLower(adjective), word, l.Place)
	}
}

// description writes Markdown paragraphs.
func description(d *rand.Rand, l Listing) string {
	word := pick(d, typeWords[l.Type])
	opening := fmt.Sprintf("%s %s in **%s**. %s", capital(pick(d, []string{
		"a " + pick(d, []string{"calm", "friendly", "plain", "well-kept"}) + " " + word,
		"our " + word, "this " + word,
	})), pick(d, []string{"for people who like it simple", "with thick walls and open windows", "built by our grandparents"}),
		l.Place, pick(d, []string{
			"You will find it easy to arrive and hard to leave.",
			"We painted it last winter and it still smells of lime.",
			"Good light in the morning, shade in the afternoon.",
		}))
	if l.RentOrBuy() == "buy" {
		opening += " It is for sale, with the papers in order and the furniture included."
	}
	rooms := fmt.Sprintf("It sleeps %d: %s in %s, and %s.", l.Guests,
		counted(l.Beds, "bed"), counted(l.Bedrooms, "bedroom"), counted(l.Bathrooms, "bathroom"))
	var phrases []string
	for _, feature := range l.Features {
		phrases = append(phrases, featurePhrases[feature])
	}
	rooms += " There is " + listed(phrases) + "."

	around := some(d, surroundings[l.Place], 2+d.IntN(3))
	manners := some(d, habits, len(habits))
	used := 1 + d.IntN(4)
	assemble := func() string {
		return strings.Join([]string{
			opening, rooms, strings.Join(around, " "), strings.Join(manners[:used], "\n- "),
		}, "\n\n")
	}
	for len(assemble()) < minDescription && used < len(manners) {
		used++
	}
	return assemble()
}

func counted(n int, noun string) string {
	numbers := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
	if n != 1 {
		noun += "s"
	}
	if n < len(numbers) {
		return numbers[n] + " " + noun
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func listed(phrases []string) string {
	if len(phrases) == 1 {
		return phrases[0]
	}
	last := len(phrases) - 1
	return strings.Join(phrases[:last], ", ") + " and " + phrases[last]
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
