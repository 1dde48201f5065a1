package market

import (
	"reflect"
	"strings"
)

// SpecificationSummary holds every property that Hostr knows, in the order of
// results (spec 40 §1.6 and §7.1). This struct is the one table of them: a flag
// is true or false, a count 0 where it is not given. Other properties do not
// show.
type SpecificationSummary struct {
	Airconditioning                bool  `json:"airconditioning"`
	AllowsPets                     bool  `json:"allows_pets"`
	Bathrooms                      int64 `json:"bathrooms"`
	Bathtub                        int64 `json:"bathtub"`
	Beds                           int64 `json:"beds"`
	Bedrooms                       int64 `json:"bedrooms"`
	MaxGuests                      int64 `json:"max_guests"`
	TV                             int64 `json:"tv"`
	Crib                           bool  `json:"crib"`
	TumbleDryer                    bool  `json:"tumble_dryer"`
	Washer                         bool  `json:"washer"`
	Elevator                       bool  `json:"elevator"`
	FreeParking                    bool  `json:"free_parking"`
	Gym                            bool  `json:"gym"`
	HairDryer                      bool  `json:"hair_dryer"`
	Heating                        bool  `json:"heating"`
	HighChair                      bool  `json:"high_chair"`
	WirelessInternet               bool  `json:"wireless_internet"`
	Iron                           bool  `json:"iron"`
	Jacuzzi                        bool  `json:"jacuzzi"`
	Kitchen                        bool  `json:"kitchen"`
	OutletCovers                   bool  `json:"outlet_covers"`
	Pool                           bool  `json:"pool"`
	PrivateEntrance                bool  `json:"private_entrance"`
	SmokingAllowed                 bool  `json:"smoking_allowed"`
	Breakfast                      bool  `json:"breakfast"`
	Fireplace                      bool  `json:"fireplace"`
	SmokeDetector                  bool  `json:"smoke_detector"`
	Essentials                     bool  `json:"essentials"`
	Shampoo                        bool  `json:"shampoo"`
	InfantsAllowed                 bool  `json:"infants_allowed"`
	ChildrenAllowed                bool  `json:"children_allowed"`
	Hangers                        bool  `json:"hangers"`
	FlatSmoothPathwayToFrontDoor   bool  `json:"flat_smooth_pathway_to_front_door"`
	GrabRailsInShowerAndToilet     bool  `json:"grab_rails_in_shower_and_toilet"`
	Oven                           bool  `json:"oven"`
	BBQ                            bool  `json:"bbq"`
	Balcony                        bool  `json:"balcony"`
	Patio                          bool  `json:"patio"`
	Dishwasher                     bool  `json:"dishwasher"`
	Refrigerator                   bool  `json:"refrigerator"`
	GardenOrBackyard               bool  `json:"garden_or_backyard"`
	Microwave                      bool  `json:"microwave"`
	CoffeeMaker                    bool  `json:"coffee_maker"`
	DishesAndSilverware            bool  `json:"dishes_and_silverware"`
	Stove                          bool  `json:"stove"`
	FireExtinguisher               bool  `json:"fire_extinguisher"`
	CarbonMonoxideDetector         bool  `json:"carbon_monoxide_detector"`
	LuggageDropoffAllowed          bool  `json:"luggage_dropoff_allowed"`
	BeachEssentials                bool  `json:"beach_essentials"`
	Beachfront                     bool  `json:"beachfront"`
	BabyMonitor                    bool  `json:"baby_monitor"`
	BabysitterRecommendations      bool  `json:"babysitter_recommendations"`
	ChildrensBooksAndToys          bool  `json:"childrens_books_and_toys"`
	GameConsole                    bool  `json:"game_console"`
	StreetParking                  bool  `json:"street_parking"`
	PaidParking                    bool  `json:"paid_parking"`
	HotWater                       bool  `json:"hot_water"`
	LakeAccess                     bool  `json:"lake_access"`
	SingleLevelHome                bool  `json:"single_level_home"`
	Waterfront                     bool  `json:"waterfront"`
	FirstAidKit                    bool  `json:"first_aid_kit"`
	HandheldShowerHead             bool  `json:"handheld_shower_head"`
	HomeStepFreeAccess             bool  `json:"home_step_free_access"`
	LockOnBedroomDoor              bool  `json:"lock_on_bedroom_door"`
	MobileHoist                    bool  `json:"mobile_hoist"`
	PathToEntranceLitAtNight       bool  `json:"path_to_entrance_lit_at_night"`
	PoolHoist                      bool  `json:"pool_hoist"`
	EVCharger                      bool  `json:"ev_charger"`
	RollinShower                   bool  `json:"rollin_shower"`
	ShowerChair                    bool  `json:"shower_chair"`
	TubWithShowerBench             bool  `json:"tub_with_shower_bench"`
	WideClearanceToBed             bool  `json:"wide_clearance_to_bed"`
	WideClearanceToShowerAndToilet bool  `json:"wide_clearance_to_shower_and_toilet"`
	WideHallwayClearance           bool  `json:"wide_hallway_clearance"`
	BabyBath                       bool  `json:"baby_bath"`
	ChangingTable                  bool  `json:"changing_table"`
	RoomDarkeningShades            bool  `json:"room_darkening_shades"`
	StairGates                     bool  `json:"stair_gates"`
	TableCornerGuards              bool  `json:"table_corner_guards"`
	ExtraPillowsAndBlankets        bool  `json:"extra_pillows_and_blankets"`
	SkiInSkiOut                    bool  `json:"ski_in_ski_out"`
	WindowGuards                   bool  `json:"window_guards"`
	DisabledParkingSpot            bool  `json:"disabled_parking_spot"`
	GrabRailsInToilet              bool  `json:"grab_rails_in_toilet"`
	EventsAllowed                  bool  `json:"events_allowed"`
	CommonSpacesShared             bool  `json:"common_spaces_shared"`
	BathroomShared                 bool  `json:"bathroom_shared"`
	SecurityCameras                bool  `json:"security_cameras"`
}

// specificationPlaces maps each name to its field above.
var specificationPlaces = indexSpecifications()

func indexSpecifications() map[string]int {
	table := reflect.TypeFor[SpecificationSummary]()
	places := make(map[string]int, table.NumField())
	for place := range table.NumField() {
		name, _, _ := strings.Cut(table.Field(place).Tag.Get("json"), ",")
		places[name] = place
	}
	return places
}

// Summary returns what results show. A count that is no number is 0, a flag that
// is anything but present false.
func (s Specifications) Summary() SpecificationSummary {
	var summary SpecificationSummary
	fields := reflect.ValueOf(&summary).Elem()
	for _, entry := range s.entries {
		place, known := specificationPlaces[entry.Name]
		if !known {
			continue
		}
		if field := fields.Field(place); field.Kind() == reflect.Bool {
			field.SetBool(entry.Value.kind == kindFlag)
		} else {
			field.SetInt(entry.Value.count)
		}
	}
	return summary
}
